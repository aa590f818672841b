"""A variable is replaced by another that belongs with it: the queries for the keys.

Right:
`q, k, v = qkv.unbind(0)`
`scores = q @ k.mT`
Wrong:
`q, k, v = qkv.unbind(0)`
`scores = q @ q.mT`
"""

import ast
import re

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for function in source.functions():
        family = _families(source, function)
        for node in source.nodes:
            read = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            if isinstance(node, ast.Name) and read and source.function_of(node) is function:
                for other in family.get(node.id, ()):
                    yield source.put(node, other)


def _families(source: Source, function: ast.FunctionDef) -> dict[str, list[str]]:
    """For each name those that are bound with it, or by the same words."""
    groups = [[a.arg for a in function.args.args if a.arg != "self"]]
    alike: dict[str, list[str]] = {}
    for node in ast.walk(function):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Tuple):
            groups.append([e.id for e in target.elts if isinstance(e, ast.Name) and e.id != "_"])
        elif isinstance(target, ast.Name) and isinstance(node, ast.Assign):
            pattern = re.sub(rf"\b{target.id}(?=\b|_)", "", source.text_of(node.value))
            alike.setdefault(pattern, []).append(target.id)
    found: dict[str, list[str]] = {}
    for group in (*groups, *alike.values()):
        for name in group:
            others = [other for other in dict.fromkeys(group) if other != name]
            found[name] = [*found.get(name, ()), *others]
    return found

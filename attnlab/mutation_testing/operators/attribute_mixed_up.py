"""One attribute is used for another of the same kind: the keys' projection for the values.

Right:
`self.k_proj = nn.Linear(d, d)`
`self.v_proj = nn.Linear(d, d)`
`v = self.v_proj(x)`
Wrong:
`self.k_proj = nn.Linear(d, d)`
`self.v_proj = nn.Linear(d, d)`
`v = self.k_proj(x)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, last_name


def edits(source: Source) -> Edits:
    kinds = _kinds(source)
    for node in source.nodes:
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        kind = kinds.get(node.attr) if last_name(node.value) == "self" else None
        for other, its in kinds.items():
            if kind == its and other != node.attr:
                yield source.put(node, f"self.{other}")


def _kinds(source: Source) -> dict[str, str]:
    """What each attribute is made by; plain values are of one kind."""
    found: dict[str, str] = {}
    for node in source.nodes:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Attribute) and isinstance(node, ast.Assign):
            made = node.value
            found[target.attr] = source.of(made.func) if isinstance(made, ast.Call) else "plain"
    return found

"""Groups of parameters exchange their options, or a group is left out of the optimizer.

Right: `groups = [{"params": a, "weight_decay": 0.1}, {"params": b, "weight_decay": 0.0}]`
Wrong: `groups = [{"params": b, "weight_decay": 0.1}, {"params": a, "weight_decay": 0.0}]`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for groups in source.of_type(ast.List):
        options = [_options(group) for group in groups.elts]
        if len(options) < 2 or not all("params" in option for option in options):
            continue
        one, other = options[:2]
        for name in one.keys() & other.keys():
            yield source.swap(one[name], other[name])
            yield source.put(one[name], source.text_of(other[name]))
            yield source.put(other[name], source.text_of(one[name]))
        for gone in groups.elts:
            rest = ", ".join(source.text_of(group) for group in groups.elts if group is not gone)
            yield source.put(groups, f"[{rest}]")


def _options(group: ast.expr) -> dict[str, ast.expr]:
    if not isinstance(group, ast.Dict):
        return {}
    pairs = zip(group.keys, group.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}

"""An attribute is replaced by another of the same kind: the projection of keys for that of values.

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
    for node in source.of_type(ast.Attribute):
        if isinstance(node.ctx, ast.Load) and last_name(node.value) == "self":
            kind = kinds.get(node.attr)
            same = [name for name in kinds if kinds[name] == kind and name != node.attr]
            yield from source.put_each(node, (f"self.{name}" for name in same))


def _kinds(source: Source) -> dict[str, str]:
    """The layer that each attribute is; "plain" for what is no call."""
    kinds: dict[str, str] = {}
    for node in source.of_type(ast.Assign):
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Attribute):
            kinds[target.attr] = (
                source.text_of(value.func) if isinstance(value, ast.Call) else "plain"
            )
    return kinds

"""The mask is read the other way round: what may be seen is hidden.

Right: `scores = scores.masked_fill(mask, low)`
Wrong: `scores = scores.masked_fill(~(mask), low)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source, condition


def edits(source: Source) -> Iterator[Edit]:
    for call in source.calls("masked_fill", "masked_fill_", "where"):
        mask = condition(call)
        if mask is not None:
            yield source.put(mask, f"~({source.of(mask)})")
    for node in source.nodes:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
            yield source.put(node, source.of(node.operand))

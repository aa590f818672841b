"""One side of a sum, a product or a quotient is forgotten: no residual, no scale, no bias.

Right: `y = self.norm(h) + x`
Wrong: `y = self.norm(h)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.BinOp):
            left, right = source.sides(node)
            yield source.put(node, left)
            if not isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
                yield source.put(node, right)

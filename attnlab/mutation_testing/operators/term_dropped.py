"""One operand is missing: no residual, no scale, no bias.

Right: `y = self.norm(h) + x`
Wrong: `y = self.norm(h)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.BinOp):
        left, right = source.sides(node)
        yield source.put(node, left)
        if not isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
            yield source.put(node, right)

"""A minus is forgotten, or one stands where none should.

Right: `rate = torch.exp(-steps)`
Wrong: `rate = torch.exp(steps)`
"""

import ast

from attnlab.mutation_testing.operators.base import SYMBOLS, Edits, Source


def edits(source: Source) -> Edits:
    for node in source.nodes:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield source.put(node, source.of(node.operand))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Mult | ast.Div):
            left, right = source.sides(node)
            yield source.put(node, f"-({left}) {SYMBOLS[type(node.op)]} {right}")
    for call in source.calls("matmul", "bmm", "einsum", "outer"):
        yield source.put_expr(call, f"-{source.of(call)}")

"""A minus sign is missing, or one too many is there.

Right: `rate = torch.exp(-steps)`
Wrong: `rate = torch.exp(steps)`
"""

import ast

from attnlab.mutation_testing.operators.base import SYMBOLS, Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.UnaryOp):
        if isinstance(node.op, ast.USub):
            yield source.put(node, source.text_of(node.operand))
    for product in source.binary(ast.MatMult, ast.Mult, ast.Div):
        left, right = source.sides(product)
        yield source.put(product, f"-({left}) {SYMBOLS[type(product.op)]} {right}")
    for call in source.calls("matmul", "bmm", "einsum", "outer"):
        yield source.put_expr(call, f"-{source.text_of(call)}")

"""A tensor is shifted by one position.

Right: `context = weights @ v`
Wrong: `context = weights @ (v).roll(1, -2)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, body


def edits(source: Source) -> Edits:
    for node in source.binary(ast.MatMult):
        for operand in (node.left, node.right):
            yield source.put(operand, f"({source.text_of(operand)}).roll(1, -2)")
    for call in source.calls("matmul", "bmm", "einsum", "scaled_dot_product_attention"):
        for value in call.args[-2:]:
            yield source.put(value, f"({source.text_of(value)}).roll(1, -2)")
    for function in source.functions("forward"):
        yield source.insert(body(function)[-1], "x = x.roll(1, 1)")

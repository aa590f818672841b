"""A value leaves the graph: the result is right, and what made it never learns.

Right: `context = weights @ v`
Wrong: `context = (weights @ v).detach()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, is_constant


def edits(source: Source) -> Edits:
    for step in source.assigned():
        if is_constant(step.value):
            continue
        yield source.put(step.value, f"{source.atom(step.value)}.detach()")
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Add):
            for operand in (node.left, node.right):
                yield source.put(operand, f"{source.atom(operand)}.detach()")
        if isinstance(node, ast.Return) and node.value is not None:
            yield source.put(node.value, f"{source.atom(node.value)}.detach()")
    for call in source.calls("softmax", "matmul", "bmm", "einsum"):
        for value in (call, *call.args[-2:]):
            yield source.put(value, f"{source.atom(value)}.detach()")

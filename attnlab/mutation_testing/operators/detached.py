"""A value is detached: the output is right, but no gradient reaches what comes before it.

Right: `context = weights @ v`
Wrong: `context = (weights @ v).detach()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, is_constant


def edits(source: Source) -> Edits:
    for step in source.assignments():
        if not is_constant(step.value):
            yield _detach(source, step.value)
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult | ast.Add):
            yield _detach(source, node.left)
            yield _detach(source, node.right)
        if isinstance(node, ast.Return) and node.value is not None:
            yield _detach(source, node.value)
    for call in source.calls("softmax", "matmul", "bmm", "einsum"):
        for value in (call, *call.args[-2:]):
            yield _detach(source, value)


def _detach(source: Source, value: ast.expr) -> Edit:
    return source.put(value, f"{source.atom(value)}.detach()")

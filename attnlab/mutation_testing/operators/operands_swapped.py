"""Two operands stand in each other's place.

Right: `scores = torch.matmul(q, k)`
Wrong: `scores = torch.matmul(k, q)`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import SYMBOLS, Edit, Source, called

ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
SYMMETRIC = ("transpose", "transpose_", "swapaxes", "swapdims", "add", "mul")


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ORDERED):
            left, right = source.sides(node)
            yield source.put_expr(node, f"({right}) {SYMBOLS[type(node.op)]} ({left})")
    for call in source.calls():
        if called(call) in SYMMETRIC:
            continue
        if len(call.args) > 1 and not any(isinstance(a, ast.Starred) for a in call.args):
            yield source.swap(call.args[0], call.args[1])

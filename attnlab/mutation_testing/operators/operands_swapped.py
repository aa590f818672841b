"""Two operands or arguments are swapped.

Right: `scores = torch.matmul(q, k)`
Wrong: `scores = torch.matmul(k, q)`
"""

import ast

from attnlab.mutation_testing.operators.base import SYMBOLS, Edits, Source, called_name

ORDERED = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
SYMMETRIC = ("transpose", "transpose_", "swapaxes", "swapdims", "add", "mul")


def edits(source: Source) -> Edits:
    for node in source.binary(*ORDERED):
        left, right = source.sides(node)
        yield source.put_expr(node, f"({right}) {SYMBOLS[type(node.op)]} ({left})")
    for call in source.calls():
        if called_name(call) in SYMMETRIC:
            continue
        if len(call.args) > 1 and not any(isinstance(a, ast.Starred) for a in call.args):
            yield source.swap(call.args[0], call.args[1])

"""A term or a factor is applied twice: the scale, or the residual.

Right: `scores = q @ k.mT / root`
Wrong: `scores = q @ k.mT / root / root`
"""

import ast

from attnlab.mutation_testing.operators.base import SYMBOLS, Edits, Source


def edits(source: Source) -> Edits:
    for node in source.binary(ast.Add, ast.Sub, ast.Mult, ast.Div):
        left, right = source.sides(node)
        symbol = SYMBOLS[type(node.op)]
        yield source.put_expr(node, f"{left} {symbol} {right} {symbol} {right}")
        if isinstance(node.op, ast.Add | ast.Mult):
            yield source.put_expr(node, f"{left} {symbol} {left} {symbol} {right}")

"""Parentheses are missing, so the operations have another order.

Right: `frequency = base ** (-2 * i / D)`
Wrong: `frequency = base ** -2 * i / D`
"""

import ast

from attnlab.mutation_testing.operators.base import SYMBOLS, Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.BinOp):
        left, right = source.sides(node)
        symbol = SYMBOLS[type(node.op)]
        if right.startswith("(") and right.endswith(")"):
            yield source.put(node, f"{left} {symbol} {right[1:-1]}")
        if left.startswith("(") and left.endswith(")"):
            yield source.put(node, f"{left[1:-1]} {symbol} {right}")

"""Brackets are forgotten, so that something else is multiplied or divided.

Right: `frequency = base ** (-2 * i / D)`
Wrong: `frequency = base ** -2 * i / D`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import SYMBOLS, Edit, Source


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.BinOp):
            left, right = source.sides(node)
            symbol = SYMBOLS[type(node.op)]
            if right.startswith("(") and right.endswith(")"):
                yield source.put(node, f"{left} {symbol} {right[1:-1]}")
            if left.startswith("(") and left.endswith(")"):
                yield source.put(node, f"{left[1:-1]} {symbol} {right}")

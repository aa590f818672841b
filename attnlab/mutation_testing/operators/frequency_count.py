"""The number of frequencies in the exponent is one less, or half, or twice what it should be.

Right: `rate = base ** (-2 * i / D)`
Wrong: `rate = base ** (-2 * i / (D - 2))`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source, integer

OTHERS = ("({} - 2)", "({} - 1)", "({} // 2)", "({} * 2)")


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            left, right = source.sides(node)
            if not right.startswith("math.") and integer(node.right) is None:
                for other in OTHERS:
                    yield source.put(node, f"{left} / {other.format(right)}")

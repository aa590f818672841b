"""A comparison takes in the border or leaves it out, or is turned around.

Right: `later = i > j`
Wrong: `later = i >= j`
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Source

OTHER: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<=", ">"),
    ast.LtE: ("<", ">="),
    ast.Gt: (">=", "<"),
    ast.GtE: (">", "<="),
    ast.Eq: ("!=", "<", ">"),
    ast.NotEq: ("==", "<", ">"),
    ast.Is: ("is not",),
    ast.IsNot: ("is",),
    ast.In: ("not in",),
    ast.NotIn: ("in",),
}


def edits(source: Source) -> Iterator[Edit]:
    for node in source.nodes:
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right = source.of(node.left), source.of(node.comparators[0])
            for symbol in OTHER[type(node.ops[0])]:
                yield source.put(node, f"{left} {symbol} {right}")

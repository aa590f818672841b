"""A comparison wrongly includes or excludes equality, or is reversed.

Right: `later = i > j`
Wrong: `later = i >= j`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source

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


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Compare):
        if len(node.ops) == 1:
            left, right = source.text_of(node.left), source.text_of(node.comparators[0])
            for symbol in OTHER[type(node.ops[0])]:
                yield source.put(node, f"{left} {symbol} {right}")

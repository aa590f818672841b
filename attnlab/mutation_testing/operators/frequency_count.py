"""The exponent divides by a wrong number of frequencies: one less, half or twice as many.

Right: `rate = base ** (-2 * i / D)`
Wrong: `rate = base ** (-2 * i / (D - 2))`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, integer

OTHERS = ("({} - 2)", "({} - 1)", "({} // 2)", "({} * 2)")


def edits(source: Source) -> Edits:
    for node in source.binary(ast.Div):
        left, right = source.sides(node)
        if not right.startswith("math.") and integer(node.right) is None:
            for other in OTHERS:
                yield source.put(node, f"{left} / {other.format(right)}")

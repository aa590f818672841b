"""A square root is missing: scores are divided by the head size itself.

Right: `scores = scores / math.sqrt(hd)`
Wrong: `scores = scores / hd`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call, value in source.calls_on("sqrt", "rsqrt"):
        yield source.put(call, source.atom(value))
    for node in source.binary(ast.Pow):
        left, right = source.sides(node)
        for more in ("* 2", "/ 2"):
            yield source.put_expr(node, f"{left} ** ({right}) {more}")

"""The square root is forgotten: the scale is that of a width, not of its root.

Right: `scores = scores / math.sqrt(hd)`
Wrong: `scores = scores / hd`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, subject


def edits(source: Source) -> Edits:
    for call in source.calls("sqrt", "rsqrt"):
        inside = subject(call)
        if inside is None:
            continue
        yield source.put(call, source.atom(inside))
    for node in source.binary(ast.Pow):
        left, right = source.sides(node)
        yield from (source.put_expr(node, f"{left} ** ({right}) {more}") for more in ("* 2", "/ 2"))

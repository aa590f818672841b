"""A float is negated, doubled, halved or zero.

Right: `scale = hd ** -0.5`
Wrong: `scale = hd ** -0.25`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Constant):
        if isinstance(node.value, float):
            for other in (-node.value, node.value * 2, node.value / 2, 0.0):
                yield source.put_expr(node, repr(other))

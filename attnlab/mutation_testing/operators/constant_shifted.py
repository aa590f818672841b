"""An integer is one too small or one too large.

Right: `half = D // 2`
Wrong: `half = D // 3`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Constant):
        if type(node.value) is int:
            for other in (node.value + 1, node.value - 1):
                yield source.put_expr(node, str(other))

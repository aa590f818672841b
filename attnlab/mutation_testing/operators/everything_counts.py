"""A comparison that tells what counts from padding is always true, or never.

Right: `counted = targets != PADDING`
Wrong: `counted = (targets == targets)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Compare):
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq):
            text = source.text_of(node.left)
            yield from source.put_each(node, (f"({text} == {text})", f"({text} != {text})"))

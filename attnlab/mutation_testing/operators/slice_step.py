"""A slice has a wrong step, or takes odd elements in place of even ones.

Right: `pe[:, 0::2] = angles.sin()`
Wrong: `pe[:, 1::2] = angles.sin()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, integer


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Slice):
        if node.step is not None:
            low, step = integer(node.lower) or 0, source.text_of(node.step)
            other = 1 - low if low in (0, 1) else 0
            yield from source.put_each(
                node, (f"{other}::{step}", f"{low}::{step} + 1", f"{low}::1")
            )

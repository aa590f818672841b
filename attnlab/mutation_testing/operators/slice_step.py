"""A slice takes every element where every second was meant, or the odd ones in place of the even.

Right: `pe[:, 0::2] = angles.sin()`
Wrong: `pe[:, 1::2] = angles.sin()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, integer


def edits(source: Source) -> Edits:
    for node in source.of_type(ast.Slice):
        if node.step is not None:
            low = integer(node.lower) or 0
            step = source.of(node.step)
            yield source.put(node, f"{1 - low if low in (0, 1) else 0}::{step}")
            yield source.put(node, f"{low}::{step} + 1")
            yield source.put(node, f"{low}::1")

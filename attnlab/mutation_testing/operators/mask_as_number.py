"""A boolean mask is added to the scores or multiplied with them.

Right: `scores = scores.masked_fill(mask, low)`
Wrong: `scores = scores + (mask)`
"""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, argument, is_method


def edits(source: Source) -> Edits:
    for call in source.calls("masked_fill", "masked_fill_"):
        mask = argument(call, "mask", 0)
        if is_method(call) and isinstance(call.func, ast.Attribute) and mask is not None:
            value, text = source.of(call.func.value), source.of(mask)
            yield source.put(call, f"{value} + ({text})")
            yield source.put(call, f"{value} * ~({text})")
            yield source.put(call, f"{value} - 2.0 * ({text})")

"""Sine and cosine stand in each other's place, or one of them is used twice.

Right: `pe[:, 0::2] = angles.sin()`
Wrong: `pe[:, 0::2] = angles.cos()`
"""

import ast

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, Splice, called

OTHER = {"sin": "cos", "cos": "sin"}


def edits(source: Source) -> Edits:
    calls = list(source.calls(*OTHER))
    for call in calls:
        yield Edit(splices=(_other(source, call),))
    if calls:
        yield Edit(splices=tuple(_other(source, call) for call in calls))


def _other(source: Source, call: ast.Call) -> Splice:
    end = source.span(call.func)[1]
    return end - 3, end, OTHER[called(call)]

"""Softmax runs over a wrong axis: the queries, the heads or the batch.

Right: `weights = scores.softmax(dim=-1)`
Wrong: `weights = scores.softmax(dim=-2)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument

AXES = (-1, -2, -3, 0, 1)


def edits(source: Source) -> Edits:
    for call in source.calls("softmax", "log_softmax", "softmin"):
        yield from source.put_other_axes(argument(call, "dim", 0), AXES)

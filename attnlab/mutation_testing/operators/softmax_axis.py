"""Softmax runs over another axis: over the queries, the heads or the batch in place of the keys.

Right: `weights = scores.softmax(dim=-1)`
Wrong: `weights = scores.softmax(dim=-2)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument, integer

AXES = (-1, -2, -3, 0, 1)


def edits(source: Source) -> Edits:
    for call in source.calls("softmax", "log_softmax", "softmin"):
        axis = argument(call, "dim", 0)
        for other in AXES if axis is not None else ():
            if axis is not None and integer(axis) != other:
                yield source.put(axis, str(other))

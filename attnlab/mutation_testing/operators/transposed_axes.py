"""A transpose exchanges another pair of axes.

Right: `k = k.transpose(-2, -1)`
Wrong: `k = k.transpose(-3, -1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, integer


def edits(source: Source) -> Edits:
    for call in source.calls("transpose", "swapaxes", "swapdims", "movedim"):
        for axis in call.args[-2:]:
            number = integer(axis)
            for other in () if number is None else (number - 1, number + 1):
                yield source.put(axis, str(other))

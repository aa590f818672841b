"""A transpose swaps the wrong pair of axes.

Right: `k = k.transpose(-2, -1)`
Wrong: `k = k.transpose(-3, -1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("transpose", "swapaxes", "swapdims", "movedim"):
        for axis in call.args[-2:]:
            yield from source.put_next_axes(axis)

"""`flatten` starts one axis too early or too late.

Right: `merged = context.flatten(2)`
Wrong: `merged = context.flatten(1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument, integer


def edits(source: Source) -> Edits:
    for call in source.calls("flatten"):
        axis = argument(call, "start_dim", 0)
        number = integer(axis)
        if axis is not None and number is not None:
            for other in (number - 1, number + 1):
                yield source.put(axis, str(other))

"""`flatten` starts one axis too early or too late.

Right: `merged = context.flatten(2)`
Wrong: `merged = context.flatten(1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument


def edits(source: Source) -> Edits:
    for call in source.calls("flatten"):
        yield from source.put_next_axes(argument(call, "start_dim", 0))

"""Sine and cosine are swapped, or one of them is used twice.

Right: `pe[:, 0::2] = angles.sin()`
Wrong: `pe[:, 0::2] = angles.cos()`
"""

from attnlab.mutation_testing.operators.base import Edit, Edits, Source, called_name

OTHER = {"sin": "cos", "cos": "sin"}


def edits(source: Source) -> Edits:
    each = [source.rename(call.func, OTHER[called_name(call)]) for call in source.calls(*OTHER)]
    yield from each
    if each:
        yield Edit(splices=tuple(splice for edit in each for splice in edit.splices))

"""Masked scores get a wrong value: not low enough, zero, or positive.

Right: `scores = scores.masked_fill(mask, float("-inf"))`
Wrong: `scores = scores.masked_fill(mask, -1e-9)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument

VALUES = ("0.0", "-1e-9", "1e9", '-float("inf") * -1', "-5.0", "-30.0", "-1e3", 'float("nan")')


def edits(source: Source) -> Edits:
    for call in source.calls("masked_fill", "masked_fill_"):
        value = argument(call, "value", 1)
        if value is not None:
            yield from source.put_each(value, VALUES)
    for call in source.calls("where"):
        for branch in call.args[1:]:
            text = source.text_of(branch)
            if "inf" in text or text.startswith(("-", "low", "0")):
                yield from source.put_each(branch, VALUES)

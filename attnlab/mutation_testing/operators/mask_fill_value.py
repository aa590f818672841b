"""What is hidden gets another score: not low enough, positive, or zero.

Right: `scores = scores.masked_fill(mask, float("-inf"))`
Wrong: `scores = scores.masked_fill(mask, -1e-9)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument

VALUES = ("0.0", "-1e-9", "1e9", '-float("inf") * -1', "-5.0", "-30.0", "-1e3", 'float("nan")')


def edits(source: Source) -> Edits:
    for call in source.calls("masked_fill", "masked_fill_"):
        value = argument(call, "value", 1)
        for other in VALUES if value is not None else ():
            yield source.put(value, other)  # type: ignore[arg-type]
    for call in source.calls("where"):
        for branch in call.args[1:]:
            text = source.of(branch)
            if "inf" in text or text.startswith(("-", "low", "0")):
                yield from (source.put(branch, other) for other in VALUES)

"""The scores are used as they are, without softmax; or as their logarithm, or as sigmoids.

Right: `weights = scores.softmax(dim=-1)`
Wrong: `weights = scores.sigmoid()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, subject


def edits(source: Source) -> Edits:
    for call in source.calls("softmax"):
        inside = subject(call)
        if inside is None:
            continue
        yield source.put(call, source.atom(inside))
        yield source.put(call, f"{source.atom(inside)}.sigmoid()")
        yield source.put(call, source.of(call).replace("softmax(", "log_softmax("))

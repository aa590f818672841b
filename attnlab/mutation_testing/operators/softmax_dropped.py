"""Softmax is missing, or replaced by a sigmoid or by log-softmax.

Right: `weights = scores.softmax(dim=-1)`
Wrong: `weights = scores.sigmoid()`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call, scores in source.calls_on("softmax"):
        yield source.put(call, source.atom(scores))
        yield source.put(call, f"{source.atom(scores)}.sigmoid()")
        yield source.put(call, source.text_of(call).replace("softmax(", "log_softmax("))

"""Scores are clamped to bounds that real scores exceed.

Right: `weights = scores.softmax(dim=-1)`
Wrong: `weights = scores.clamp(max=8.0).softmax(dim=-1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source

BOUNDS = ("max=8.0", "min=-20.0", "min=-1e3", "-50.0, 50.0")


def edits(source: Source) -> Edits:
    for _, scores in source.calls_on("softmax"):
        for bound in BOUNDS:
            yield source.put(scores, f"{source.atom(scores)}.clamp({bound})")

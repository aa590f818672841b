"""Scores are held within bounds that real ones exceed.

Right: `weights = scores.softmax(dim=-1)`
Wrong: `weights = scores.clamp(max=8.0).softmax(dim=-1)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, subject

BOUNDS = ("max=8.0", "min=-20.0", "min=-1e3", "-50.0, 50.0")


def edits(source: Source) -> Edits:
    for call in source.calls("softmax"):
        inside = subject(call)
        if inside is None:
            continue
        for bound in BOUNDS:
            yield source.put(inside, f"{source.atom(inside)}.clamp({bound})")

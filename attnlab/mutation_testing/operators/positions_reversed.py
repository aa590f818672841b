"""Positions run backwards.

Right: `position = torch.arange(length)`
Wrong: `position = torch.arange(length).flip(0)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("arange"):
        yield source.put(call, f"{source.text_of(call)}.flip(0)")
    for call in source.calls("range"):
        yield source.put(call, f"{source.text_of(call)}[::-1]")

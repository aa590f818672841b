"""Positions start at one, or at minus one.

Right: `position = torch.arange(length)`
Wrong: `position = torch.arange(length) + 1`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("arange"):
        yield source.put_expr(call, f"{source.text_of(call)} + 1")
        yield source.put_expr(call, f"{source.text_of(call)} - 1")
    for call in source.calls("range"):
        yield source.put(call, f"[i + 1 for i in {source.text_of(call)}]")

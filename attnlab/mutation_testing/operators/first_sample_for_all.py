"""A value of the first sample is used for the whole batch, or samples are mixed up.

Right: `scores = scores.masked_fill(mask, low)`
Wrong: `scores = scores.masked_fill((mask)[:1], low)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source


def edits(source: Source) -> Edits:
    for call in source.calls("masked_fill", "masked_fill_", "where", "repeat_interleave"):
        for value in call.args[:1]:
            yield source.put(value, f"({source.text_of(value)})[:1]")
    for node in source.assignments():
        text = source.text_of(node.value)
        yield from source.put_each(
            node.value, (f"({text})[:1].expand_as({text})", f"({text}).flip(0)")
        )

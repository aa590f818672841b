"""The mask is made and never applied.

Right: `scores = scores.masked_fill(mask, low)`
Wrong: `scores = scores`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, body, subject


def edits(source: Source) -> Edits:
    for call in source.calls("masked_fill", "masked_fill_"):
        inside = subject(call)
        if inside is None:
            continue
        yield source.put(call, source.of(inside))
    for function in source.functions("forward"):
        if any(a.arg == "mask" for a in function.args.args):
            yield source.insert(body(function)[0], "mask = None")
            yield source.insert(body(function)[0], "mask = None if mask is None else mask & False")

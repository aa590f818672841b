"""The mask is computed but never applied.

Right: `scores = scores.masked_fill(mask, low)`
Wrong: `scores = scores`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, body


def edits(source: Source) -> Edits:
    for call, scores in source.calls_on("masked_fill", "masked_fill_"):
        yield source.put(call, source.text_of(scores))
    for function in source.functions("forward"):
        if any(a.arg == "mask" for a in function.args.args):
            yield source.insert(body(function)[0], "mask = None")
            yield source.insert(body(function)[0], "mask = None if mask is None else mask & False")

"""The mask has queries and keys swapped.

Right: `scores = scores.masked_fill(mask.unsqueeze(1), low)`
Wrong: `scores = scores.masked_fill((mask.unsqueeze(1)).mT, low)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, body, condition


def edits(source: Source) -> Edits:
    for call in source.calls("masked_fill", "masked_fill_", "where"):
        mask = condition(call)
        if mask is not None:
            yield source.put(mask, f"({source.text_of(mask)}).mT")
    for function in source.functions("forward"):
        if any(a.arg == "mask" for a in function.args.args):
            yield source.insert(body(function)[0], "mask = mask.mT if mask is not None else None")

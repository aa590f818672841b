"""A boolean mask is added to the scores, subtracted from them or multiplied with them.

Right: `scores = scores.masked_fill(mask, low)`
Wrong: `scores = scores + (mask)`
"""

from attnlab.mutation_testing.operators.base import Edits, Source, argument, is_method


def edits(source: Source) -> Edits:
    for call, scores in source.calls_on("masked_fill", "masked_fill_"):
        mask = argument(call, "mask", 0)
        if is_method(call) and mask is not None:
            for sign in ("+ ", "* ~", "- 2.0 * "):
                yield source.put(call, f"{source.text_of(scores)} {sign}({source.text_of(mask)})")

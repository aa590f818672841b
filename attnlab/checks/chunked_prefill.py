"""A prompt read in pieces of any length, with a cache, gives what it gives at once.

One position at a time hides what several at once show: inside a chunk the mask must be causal too,
and its corner belongs at the end of the keys.

Wrong: no mask in a chunk, since "the cache holds only the past"; `is_causal=True` with more keys
than queries, which aligns the mask with the first key; a mask made for S by S.
Right: query i of a chunk behind p positions sees the keys up to p + i.

Probed by chunks of 3, and of other lengths.
"""

from attnlab.checks.base import Failure, Probe, Skip, Tier
from attnlab.checks.shared.inputs import stepwise

TITLE = "A prompt in chunks equals one pass"
NEEDS = ("cache", "causal", "sequence")
FEW = True
TIER = Tier.WEIGHTS
ADVICE = "Print the mask of the second chunk: its last row may see all keys, its first not."
CHUNK = 3


def run(probe: Probe) -> Failure | None:
    length = probe.sizes.get("S", 1)
    if length < CHUNK:
        raise Skip("too few positions for chunks")
    first = probe.random_integer(1, length - 1)
    rest = [CHUNK] * (length // CHUNK)
    threes = [*rest, length % CHUNK] if length % CHUNK else rest
    return stepwise(probe, threes) or stepwise(probe, [first, length - first])

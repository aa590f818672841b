"""A sequence read one position at a time, with a cache, gives what it gives at once.

Keys and values of earlier positions never change under a causal mask, so they are kept.

Wrong: a cache joined along the wrong axis or in the wrong order, positions that begin at 0 again in
each step, keys cached before and read after rotation, the newest key left out.
Right: output t of the whole sequence is the output of step t.

Probed by steps of one position, from nothing and after a prompt.
"""

from attnlab.checks.base import Failure, Probe, Skip
from attnlab.checks.pieces import stepwise

TITLE = "Decoding with a cache equals one pass"
NEEDS = ("cache", "causal", "sequence")
FEW = True
AFTER = ("output-shape", "finite", "deterministic-eval", "batch-independence", "causality")
ADVICE = "Print the shape of keys after each step, and the positions that each step was given."


def run(probe: Probe) -> Failure | None:
    length = probe.sizes.get("S", 1)
    if length < 2:
        raise Skip("one position is one step")
    for prompt in (1, probe.pick(1, length)):
        failure = stepwise(probe, [prompt, *[1] * (length - prompt)])
        if failure:
            return failure
    return None

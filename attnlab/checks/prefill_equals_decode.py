"""A sequence read one position at a time, with a cache, gives what it gives at once.

Keys and values of earlier positions never change under a causal mask, so they are kept.

Wrong: a cache joined along the wrong axis or in the wrong order, positions that begin at 0 again in
each step, keys cached before and read after rotation, the newest key left out.
Right: output t of the whole sequence is the output of step t.

Probed by steps of one position, from nothing and after a prompt; in train mode too, unless it drops
values at random; and in each dtype that the contract names.
"""

from attnlab.checks.base import Failure, Probe, Skip, Tier
from attnlab.checks.shared.inputs import EPS, ROUNDINGS, ordered, parts, stepwise

TITLE = "Decoding with a cache equals one pass"
NEEDS = ("cache", "causal", "sequence")
FEW = True
TIER = Tier.MASKS
IN_TYPE = "Look at the dtype of what the cache holds: it is that of the keys that come."
ADVICE = "Print the shape of keys after each step, and the positions that each step was given."


def run(probe: Probe) -> Failure | None:
    length = probe.sizes.get("S", 1)
    if length < 2:
        raise Skip("one position is one step")
    for prompt in (1, probe.random_integer(1, length)):
        failure = stepwise(probe, [prompt, *[1] * (length - prompt)])
        if failure:
            return failure
    lengths = [length - 1, 1]
    busy = "dropout" not in probe.contract.promises
    failure = stepwise(probe, lengths, train=True) if busy else None
    for dtype in probe.contract.dtypes:
        failure = failure or _cast(probe, dtype, lengths)
    return failure


def _cast(probe: Probe, dtype: str, lengths: list[int]) -> Failure | None:
    """The last position, with what the cache holds of those before it in this type."""
    other = probe.variant({}, dtype)
    inputs = ordered(other)
    whole = other.call(inputs)
    last = other.cached_steps(parts(other.contract, inputs, lengths))[-1]
    right = whole.narrow(other.contract.output.index("S"), lengths[0], lengths[1])
    if last.shape != right.shape or last.dtype != right.dtype:
        return Failure(
            message=f"in {dtype} the step after a prompt gave {tuple(last.shape)} in {last.dtype}, "
            f"the whole sequence {tuple(right.shape)} in {right.dtype}"
        )
    gap = (last.double() - right.double()).abs().max().item()
    limit = ROUNDINGS * EPS[dtype] * max(1.0, whole.abs().max().item())
    if gap <= limit:
        return None
    return Failure(
        message=f"in {dtype} the step after a prompt differs from the whole sequence by up to "
        f"{gap:.2g}; rounding explains {limit:.2g}",
        advice=IN_TYPE,
    )

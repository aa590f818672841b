"""Equal inputs at all positions give equal outputs at all positions, whatever the mask.

Attention averages values with weights that sum to 1. Where all values are the same, the average is
that value, however many keys a query may see. So row sums show without seeing the weights.

Wrong: multiplying the mask in after the softmax, a sigmoid instead of a softmax, a softmax over the
queries: rows no longer sum to 1, and a query that sees fewer keys gets less.
Right: mask before the softmax, softmax over the keys.
"""

from attnlab.checks.base import (
    Failure,
    Inputs,
    Mask,
    Probe,
    Skip,
    Steps,
    Tier,
    data_inputs,
    far,
    first_index,
)

TITLE = "Attention rows sum to 1"
NEEDS = ("averaging", "sequence")
FEW = True
TIER = Tier.WEIGHTS
ADVICE = "Print weights.sum(-1): every row must be 1, after the mask and over the keys."


def run(probe: Probe) -> Steps:
    if probe.sizes.get("S", 1) < 2:
        raise Skip("with one position every row is trivially 1")
    at = probe.contract.output.index("S")
    masks: tuple[Mask, ...] = ("random", "causal", "none")
    kinds = probe.choose_ways(masks)
    outputs = yield [_constant(probe, mask) for mask in kinds]
    for mask, out in zip(kinds, outputs, strict=True):
        gap = far(out, out.narrow(at, 0, 1).expand_as(out))
        if gap.any().item():
            return Failure(
                message=f"all positions of the input were equal, but the output at "
                f"{first_index(gap)} is not what position 0 gives ({mask} mask)"
            )
    return None


def _constant(probe: Probe, mask: Mask) -> Inputs:
    """The same at every position."""
    inputs = probe.draw(mask)
    for along in ("S", "Sk"):  # keys may come from a context
        for spec in data_inputs(probe.contract, along):
            axis, value = spec.axes.index(along), inputs[spec.name]
            inputs[spec.name] = value.narrow(axis, 0, 1).expand_as(value).clone()
    return inputs

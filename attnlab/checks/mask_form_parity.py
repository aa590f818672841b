"""A boolean mask and the additive one that says the same give the same output.

An additive mask is added to the scores: 0 where a key may be attended to, -inf or a very negative
number where it may not.

Wrong: `masked_fill(mask, -inf)` with a float mask, which forbids what is not 0; `mask.bool()`, for
which -inf and every bias are True; a float mask multiplied in.
Right: `scores + mask` for a float mask, `masked_fill` for a boolean one.

Probed with -inf and with -1e9, where the contract says that the mask may be `additive`.
"""

from attnlab.abilities import by_query
from attnlab.checks.base import Failure, Mask, Probe, Steps, Tensor, first_index, mask_input
from attnlab.checks.pieces import apart

TITLE = "Boolean and additive masks agree"
NEEDS = ("mask", "additive", "floats")
FEW = True
AFTER = ("output-shape", "finite", "deterministic-eval", "causality", "mask-effect")
ADVICE = "Look at the branch on mask.dtype: a float mask is added, a boolean one is filled in."
LOWEST = (float("-inf"), -1e9)


def run(probe: Probe) -> Steps:
    spec = mask_input(probe.contract)
    kinds: tuple[Mask, ...] = ("random", "causal") if by_query(spec) else ("random", "padding")
    ways = [(kind, low, *probe.sample(kind)) for kind in kinds for low in LOWEST]
    outputs = yield [
        {**inputs, spec.name: _additive(probe, inputs[spec.name] == spec.forbids, low)}
        for _, low, inputs, _ in ways
    ]
    for (kind, low, _, boolean), out in zip(ways, outputs, strict=True):
        gap = apart(probe, boolean, out)
        if gap.any().item():
            return Failure(
                message=f"the same {kind} mask as floats, 0 and {low:g}, gave another output "
                f"at {first_index(gap)} than as booleans: they differ by up to "
                f"{(boolean - out).abs().max().item():.2g}"
            )
    return None


def _additive(probe: Probe, forbidden: Tensor, low: float) -> Tensor:
    return (probe.noise(forbidden.float()) * 0).masked_fill(forbidden, low)

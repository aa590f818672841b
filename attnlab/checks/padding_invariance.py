"""Padding that is masked changes nothing, however much of it there is.

Sequences of a batch are filled up to the longest. What stands there, and how much, must not matter.

Wrong: an average over S instead of over the real keys, a norm over all positions, a mask that is
compared with the wrong length, weights renormalised over keys that are not there.
Right: a sequence gives the same outputs with 3 masked positions behind it as without them; where
the module knows no positions, also with the padding in front.
"""

from attnlab.checks.base import Failure, Probe, Skip, first_index, key_axis, mask_input, query_axis
from attnlab.checks.pieces import apart, piece

TITLE = "Masked padding changes nothing"
NEEDS = ("keys",)
FEW = True
AFTER = (
    "output-shape",
    "finite",
    "deterministic-eval",
    "batch-independence",
    "causality",
    "mask-effect",
    "reach",
    "permutation-equivariance",
)
ADVICE = (
    "Compare the run with padding and the run without, step by step: the first step whose real "
    "rows differ counts positions that are not there."
)


def run(probe: Probe) -> Failure | None:
    axis = key_axis(probe.contract)
    length = probe.sizes.get(axis, 1)
    if length < 2:
        raise Skip("one position leaves no room for padding")
    if axis not in probe.contract.vary:
        raise Skip("its length is fixed")
    more = probe.pick(1, max(2, min(4, length - 1)))  # where it can be, two keys stay
    real = [slice(0, length - more)]
    promises = probe.contract.promises
    if "averaging" in promises and "causal" not in promises:
        real.append(slice(more, length))
    for part in real:
        failure = _padded(probe, part, length)
        if failure:
            return failure
    return None


def _padded(probe: Probe, real: slice, length: int) -> Failure | None:
    contract = probe.contract
    spec, own = mask_input(contract), query_axis(contract)
    inputs = probe.draw("random")
    mask = inputs[spec.name].clone()
    if mask.shape[-1] != length:
        raise Skip("the mask's last axis is not that of the keys")
    mask[..., real.start] = not spec.forbids  # every query keeps a key
    mask[..., : real.start] = spec.forbids
    mask[..., real.stop :] = spec.forbids
    inputs[spec.name] = mask
    rows = real if key_axis(contract) == own else slice(None)
    padded = probe.call(inputs).movedim(contract.output.index(own), 0)[rows]
    alone = probe.call(piece(contract, inputs, rows, real)).movedim(contract.output.index(own), 0)
    gap = apart(probe, alone, padded)
    if not gap.any().item():
        return None
    side = "before" if real.start else "behind"
    count = length - (real.stop - real.start)
    at = first_index(gap.movedim(0, contract.output.index(own)))
    return Failure(
        message=f"{count} masked position{'s' * (count > 1)} {side} the others changed the output "
        f"at {at} of the real ones, by up to {(alone - padded).abs().max().item():.2g}"
    )

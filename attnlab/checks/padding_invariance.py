"""Padding that is masked changes nothing, however much of it there is.

Sequences of a batch are filled up to the longest. What stands there, and how much, must not matter.

Wrong: an average over S instead of over the real keys, a norm over all positions, a mask that is
compared with the wrong length, weights renormalised over keys that are not there.
Right: a sequence gives the same outputs with 3 masked positions behind it as without them; where
the module knows no positions, also with the padding in front.
"""

from attnlab.catalogue.contract_facts import by_query
from attnlab.checks.base import (
    Failure,
    Inputs,
    Probe,
    Skip,
    Steps,
    Tensor,
    Tier,
    first_index,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.checks.shared.inputs import apart, piece
from attnlab.records import Contract

TITLE = "Masked padding changes nothing"
NEEDS = ("keys",)
FEW = True
TIER = Tier.HEADS
ADVICE = (
    "Compare the run with padding and the run without, step by step: the first step whose real "
    "rows differ counts positions that are not there."
)


def run(probe: Probe) -> Steps:
    axis = key_axis(probe.contract)
    length = probe.sizes.get(axis, 1)
    if length < 2:
        raise Skip("one position leaves no room for padding")
    if axis not in probe.contract.vary:
        raise Skip("its length is fixed")
    more = probe.random_integer(1, max(2, min(4, length - 1)))  # where it can be, two keys stay
    real = [slice(0, length - more)]
    promises = probe.contract.promises
    if "averaging" in promises and "causal" not in promises:
        real.append(slice(more, length))
    real = probe.choose_ways(real)
    pairs = [_pair(probe, part, length) for part in real]
    outputs = yield [inputs for pair in pairs for inputs in pair]
    for part, padded, alone in zip(real, outputs[::2], outputs[1::2], strict=True):
        failure = _differ(probe, part, length, padded, alone)
        if failure:
            return failure
    return None


def _rows(contract: Contract, real: slice) -> slice:
    """The queries that are no padding."""
    return real if key_axis(contract) == query_axis(contract) else slice(None)


def _pair(probe: Probe, real: slice, length: int) -> tuple[Inputs, Inputs]:
    """Inputs with all but these keys masked, and these keys alone."""
    contract, spec = probe.contract, mask_input(probe.contract)
    inputs = probe.draw("random")
    mask = inputs[spec.name].clone()
    if mask.shape[-1] != length:
        raise Skip("the mask's last axis is not that of the keys")
    mask[..., real.start] = not spec.forbids  # every query keeps a key
    if by_query(spec) and key_axis(contract) == query_axis(contract):
        rows = [*range(real.start), *range(real.stop, length)]
        mask[..., rows, :] = mask[..., [real.start], :].clone()  # padding sees no more
    mask[..., : real.start] = spec.forbids
    mask[..., real.stop :] = spec.forbids
    inputs[spec.name] = mask
    return inputs, piece(contract, inputs, _rows(contract, real), real)


def _differ(
    probe: Probe, real: slice, length: int, padded: Tensor, alone: Tensor
) -> Failure | None:
    queries, output = query_axis(probe.contract), probe.contract.output
    if queries in output:
        at = output.index(queries)
        padded = padded.movedim(at, 0)[_rows(probe.contract, real)].movedim(0, at)
    gap = apart(probe, alone, padded)
    if not gap.any().item():
        return None
    side = "before" if real.start else "behind"
    count = length - (real.stop - real.start)
    off = (alone - padded).abs().max().item()
    return Failure(
        message=f"{count} masked position{'s' * (count > 1)} {side} the others changed the output "
        f"at {first_index(gap)} of the real ones, by up to {off:.2g}"
    )

"""A masked key changes nothing.

Wrong: a mask that is inverted, ignored, multiplied in after the softmax, filled with -1e-9, or
broadcast along the wrong axis: the value of a key that may not be attended to still arrives.
Right: when key j is masked for every query, changing position j changes no output but its own.

Probed at unit scale, and with scores far below zero where a query may attend to one key alone: a
fill of -100, or scores multiplied by 0, is then the largest of all.
"""

from attnlab.checks.base import (
    Failure,
    Inputs,
    Probe,
    Skip,
    far,
    first_index,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.checks.pieces import moved

TITLE = "Masked keys change nothing"
NEEDS = ("mask", "keys")
FEW = True
AFTER = ("output-shape", "finite", "deterministic-eval", "batch-independence", "causality")
ADVICE = (
    "Print the scores right after the mask: every masked entry must be -inf before the softmax."
)


LOUD = 30.0


def run(probe: Probe) -> Failure | None:
    length = probe.sizes.get(key_axis(probe.contract), 1)
    if length < 2:
        raise Skip("with one position there is no other key to mask")
    first = int("causal" in probe.contract.promises)  # key 0 is all that query 0 has
    for key in sorted({first, length - 1, probe.pick(first, length)}):
        failure = _leaks(probe, probe.draw("random"), key, length)
        if failure:
            return failure
    return _leaks(probe, probe.draw("one-key", LOUD), probe.pick(first, length), length)


def _leaks(probe: Probe, inputs: Inputs, key: int, length: int) -> Failure | None:
    contract = probe.contract
    axis, spec = key_axis(contract), mask_input(contract)
    if inputs[spec.name].shape[-1] != length:
        raise Skip("the mask's last axis is not the sequence")
    mask = inputs[spec.name].clone()
    hidden = (mask[..., key] != spec.forbids).unsqueeze(-1)  # queries that had this key
    mask[..., key] = spec.forbids
    causal = "causal" in contract.promises
    spare = mask[..., 0 if causal else (key + 1) % length]
    spare[(spare == spec.forbids) & hidden.squeeze(-1)] = not spec.forbids
    inputs[spec.name] = mask
    before, after = probe.calls([inputs, moved(probe, inputs, axis, slice(key, key + 1))])
    gap = far(before, after)
    if axis == query_axis(contract):
        gap.select(contract.output.index(axis), key).fill_(False)
    if gap.any().item():
        return Failure(
            message=f"key {key} was masked for every query; changing position {key} still "
            f"changed the output at {first_index(gap)}"
        )
    return None

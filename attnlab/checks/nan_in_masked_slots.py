"""NaN at masked keys does not reach the output.

A cache that was never written to, or a padded position of a loader, may hold anything. A weight of
0 does not keep it out: 0 times NaN is NaN, and so is NaN plus -inf. An ordinary attention
therefore lets it through, and only modules that promise `nan-safe` are looked at.

Wrong: `torch.empty` for a cache with an additive mask; `weights @ v` with whatever v holds.
Right: keys and values are set to 0 where nobody may attend to them, before they are used.
"""

from attnlab.checks.base import (
    Failure,
    Inputs,
    Probe,
    Skip,
    Steps,
    Tier,
    data_inputs,
    first_index,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.checks.shared.inputs import apart
from attnlab.records import Input

TITLE = "NaN at masked keys stays there"
NEEDS = ("keys", "nan-safe", "floats")
FEW = True
TIER = Tier.WEIGHTS
ADVICE = "Fill keys and values with 0 where the mask forbids them for every query."
GARBAGE = (float("nan"), float("inf"))


def run(probe: Probe) -> Steps:
    axis, spec = key_axis(probe.contract), mask_input(probe.contract)
    length = probe.sizes.get(axis, 1)
    if length < 2:
        raise Skip("with one position there is no other key to mask")
    ways = [(_hidden(probe, spec, length), garbage) for garbage in GARBAGE]
    outputs = yield [
        given
        for (inputs, key), garbage in ways
        for given in (inputs, _spoiled(probe, inputs, key, garbage))
    ]
    for ((_, key), garbage), before, after in zip(ways, outputs[::2], outputs[1::2], strict=True):
        gap = apart(probe, before, after)
        if axis == query_axis(probe.contract) and axis in probe.contract.output:
            gap.select(probe.contract.output.index(axis), key).fill_(False)
        if gap.any().item():
            return Failure(
                message=f"key {key} was masked for every query and holds {garbage}; it reached "
                f"{int(gap.sum().item())} values of the output, the first at {first_index(gap)}"
            )
    return None


def _hidden(probe: Probe, spec: Input, length: int) -> tuple[Inputs, int]:
    """Inputs with one key masked for every query, and which."""
    first = int("causal" in probe.contract.promises)  # key 0 is all that query 0 has
    key = probe.random_integer(first, length)
    inputs = probe.draw("random")
    mask = inputs[spec.name].clone()
    mask[..., 0 if first else (key + 1) % length] = not spec.forbids
    mask[..., key] = spec.forbids
    return {**inputs, spec.name: mask}, key


def _spoiled(probe: Probe, inputs: Inputs, key: int, garbage: float) -> Inputs:
    axis, found = key_axis(probe.contract), dict(inputs)
    for data in (d for d in data_inputs(probe.contract, axis) if d.dtype == "float"):
        new = inputs[data.name].clone()
        new.select(data.axes.index(axis), key).fill_(garbage)
        found[data.name] = new
    return found

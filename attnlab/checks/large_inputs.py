"""Large inputs give what the reference gives: no score is cut off, and no fill is reached.

Where queries and keys are large, a score may be far below any number that was thought of as "low".
A mask that fills with -1000 then prefers the keys it should hide, and scores that are clamped
become ties.

Wrong: `scores.masked_fill(mask, -1e3)`; `scores.clamp(-50, 50)`; a row's maximum taken over a fill
of 0, below which every weight underflows.
Right: fill with -inf or the least number of the dtype, and leave the scores to softmax. A fill of
-1e4 is enough for inputs of this size, and passes.

The positions of a sample are given a large part in common, so that all scores of a row are far up
or far down together, and parts of their own that still tell them apart. At that size rounding of
the input alone moves the result; how far is measured on the reference, and that much is allowed,
and the rounding of a score, and what the reference itself loses in float32.
"""

from itertools import cycle
from typing import NamedTuple

from attnlab.checks.base import (
    Failure,
    Inputs,
    Mask,
    Probe,
    Steps,
    Tensor,
    Tier,
    data_inputs,
    first_index,
    key_axis,
    masks,
    query_axis,
)
from attnlab.records import Contract

TITLE = "Large inputs give what the reference gives"
NEEDS = ("reference", "output", "floats", "attention")
FEW = True
TIER = Tier.REGIMES
ADVICE = "Look for numbers that scores are compared with or filled by: what if a score is -5000?"
# Scale of what the positions share, and of what each has to itself, for each draw: with much in
# common all scores of a row may be far down, and be lower than a number that fills the hidden ones;
# with little, a hidden one may be so far up that a number added to it does not hide it.
DRAWS = ((30.0, 12.5), (30.0, 12.5), (18.0, 24.0))
OPEN = (60.0, 25.0)  # where no mask is given, and none is made: there is no fill to be reached
ALONE = 4  # inputs to a module that takes none: its own hides each key from some only
ULP = 2.0**-23
# Times the tolerance of a value: where weights are made by taking a row's log-sum-exp from scores,
# the rounding of a score of thousands moves all of them together.
ROOM = 3
SLACK = 64  # roundings in a chain, each as large as that of the input


def run(probe: Probe) -> Steps:
    ways = _ways(probe.contract)
    drawn = [_large(probe, way) for way in ways]
    outputs = yield drawn
    rights = probe.expected_each(drawn)
    for way, inputs, out, right in zip(ways, drawn, outputs, rights, strict=True):
        failure = _compare(probe, inputs, out, right, way)
        if failure:
            return failure
    return None


class Way(NamedTuple):
    """A kind of mask, and the scales of the inputs."""

    mask: Mask
    shared: float
    own: float


def _ways(contract: Contract) -> list[Way]:
    several: list[Mask] = ["random"] * len(DRAWS)
    kinds = masks(contract, *several, "none")
    if len(kinds) == 1:
        return [Way(kinds[0], *scales) for scales in (*DRAWS, *DRAWS)[:ALONE]]
    found = [Way(mask, *scales) for mask, scales in zip(kinds, cycle(DRAWS), strict=False)]
    if "causal" not in contract.promises:
        found = [Way("none", *OPEN) if way.mask == "none" else way for way in found]
    return found


def _large(probe: Probe, way: Way) -> Inputs:
    contract = probe.contract
    inputs = probe.draw(way.mask, way.own)
    for axis in {query_axis(contract), key_axis(contract)}:
        for spec in data_inputs(contract, axis):
            value = inputs[spec.name]
            if value.is_floating_point():
                common = probe.noise(value.narrow(spec.axes.index(axis), 0, 1), way.shared)
                inputs[spec.name] = value + common
    return inputs


def _compare(
    probe: Probe, inputs: Inputs, out: Tensor, expected: Tensor, way: Way
) -> Failure | None:
    gap, limit = (out.double() - expected).abs(), ROOM * probe.tolerance(expected)
    if (gap <= limit).all().item():
        return None
    moved = (probe.expected(_nudged(probe, inputs)) - expected).abs().max().item()
    limit = max(limit, SLACK * moved)
    if (gap <= limit).all().item():
        return None
    limit = max(limit, ROOM * (probe.expected_in_float32(inputs) - expected).abs().max().item())
    bad = ~(gap <= limit)
    if not bad.any().item():
        return None
    return Failure(
        message=f"for inputs of scale {way.shared:g} the output differs from the reference's at "
        f"{first_index(bad)}, by up to {gap.max().item():.2g}; rounding explains {limit:.2g} "
        f"({way.mask} mask)"
    )


def _nudged(probe: Probe, inputs: Inputs) -> Inputs:
    """The same with each value moved by about one rounding."""
    return {name: _moved(probe, value) for name, value in inputs.items()}


def _moved(probe: Probe, value: Tensor) -> Tensor:
    if value is None or not value.is_floating_point():
        return value
    return value + value * probe.noise(value, ULP)

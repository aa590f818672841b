"""A masked key changes nothing.

Wrong: a mask that is inverted, ignored, multiplied in after the softmax, filled with -1e-9,
broadcast along the wrong axis, or that of the first sample for all: the value of a key that may not
be attended to still arrives.
Right: when key j is masked for every query, changing position j changes no output but its own.

Probed at unit scale, and with scores far below zero where a query may attend to one key alone: a
fill of -100, or scores multiplied by 0, is then the largest of all.
"""

from __future__ import annotations

from typing import NamedTuple

from attnlab.checks.base import (
    Failure,
    Inputs,
    Probe,
    Skip,
    Steps,
    Tensor,
    Tier,
    far,
    first_index,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.checks.shared.inputs import hidden, moved
from attnlab.probe.answers import LOUD

TITLE = "Masked keys change nothing"
NEEDS = ("mask", "keys")
FEW = True
TIER = Tier.MASKS
ADVICE = (
    "Print the scores right after the mask: every masked entry must be -inf before the softmax."
)


class Way(NamedTuple):
    """Inputs with a key that is hidden, in all samples or in one."""

    inputs: Inputs
    key: int
    sample: int | None = None


def run(probe: Probe) -> Steps:
    axis, length = key_axis(probe.contract), probe.sizes.get(key_axis(probe.contract), 1)
    if length < 2:
        raise Skip("with one position there is no other key to mask")
    first = int("causal" in probe.contract.promises)  # key 0 is all that query 0 has
    keys = sorted({first, length - 1, probe.random_integer(first, length)})
    ways = [Way(hidden(probe, probe.draw("random"), key, length), key) for key in keys]
    loud = probe.random_integer(first, length)
    ways.append(Way(hidden(probe, probe.draw("one-key", LOUD), loud, length), loud))
    ways += _in_one_sample(probe, loud, length)
    ways = probe.choose_ways(ways)
    outputs = yield [
        given
        for way in ways
        for given in (way.inputs, moved(probe, way.inputs, axis, slice(way.key, way.key + 1)))
    ]
    for way, before, after in zip(ways, outputs[::2], outputs[1::2], strict=True):
        failure = _leaks(probe, far(before, after), way)
        if failure:
            return failure
    return None


def _in_one_sample(probe: Probe, key: int, length: int) -> list[Way]:
    """Hidden in the last sample alone: the first one's mask is not that of all."""
    spec, last = mask_input(probe.contract), probe.sizes.get("B", 1) - 1
    if last < 1 or spec.axes[0] != "B" or "B" not in probe.contract.output:
        return []
    inputs = probe.draw("random")
    mask = inputs[spec.name].clone()
    mask[0, ..., key] = not spec.forbids
    mask[last] = hidden(probe, inputs, key, length)[spec.name][last]
    return [Way({**inputs, spec.name: mask}, key, last)]


def _leaks(probe: Probe, gap: Tensor, way: Way) -> Failure | None:
    axis, axes, key = key_axis(probe.contract), probe.contract.output, way.key
    if axis == query_axis(probe.contract) and axis in axes:
        gap.select(axes.index(axis), key).fill_(False)
    if way.sample is not None:
        gap.narrow(axes.index("B"), 0, way.sample).fill_(False)
    if not gap.any().item():
        return None
    where = "" if way.sample is None else f" of sample {way.sample}"
    return Failure(
        message=f"key {key} was masked for every query{where}; changing position {key} still "
        f"changed the output at {first_index(gap)}"
    )

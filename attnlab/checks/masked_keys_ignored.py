"""Masked keys and masked padding change nothing.

When key j is masked for every query, changing position j changes no output but its own. This is
probed at unit scale, and with scores far below zero where a query may attend to one key alone: a
fill of -100, or scores multiplied by 0, is then the largest of all.

Wrong: a mask that is inverted, ignored, multiplied in after the softmax, filled with -1e-9,
broadcast along the wrong axis, or that of the first sample for all.
Right: `scores.masked_fill(mask, -inf)` before the softmax.

Padding: a sequence gives the same outputs with masked positions behind it as without them; where
the module knows no positions, also with the padding in front. Wrong: an average over S in place of
the real keys; a norm over all positions.

NaN and infinity at masked keys stay there, where the contract promises `nan-safe`. A weight of 0
does not keep them out: 0 times NaN is NaN. Wrong: `torch.empty` for a cache with an additive mask.
Right: keys and values are filled with 0 where nobody may attend to them.
"""

from __future__ import annotations

from typing import NamedTuple

from attnlab.catalogue.contract_facts import has_query_axis
from attnlab.checks.base import (
    Failure,
    Inputs,
    Probe,
    Skip,
    Steps,
    Tensor,
    Tier,
    check,
    data_inputs,
    far,
    first_index,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.checks.shared.explain import joined_heads
from attnlab.checks.shared.inputs import (
    beyond_rounding,
    cut_positions,
    hide_key,
    redraw,
)
from attnlab.probe.answers import LOUD
from attnlab.records import Contract, Input

TITLE = "Masked keys change nothing"
GARBAGE = (float("nan"), float("inf"))


class Way(NamedTuple):
    """Inputs with a key that is hidden, in all samples or in one."""

    inputs: Inputs
    key: int
    sample: int | None = None


# ---------------------------------------------------------------- mask effect


@check(
    id="mask-effect",
    title="Masked keys change nothing",
    needs=("mask", "keys"),
    tier=Tier.MASKS,
    advice=(
        "Print the scores right after the mask: every masked entry must be -inf before the softmax."
    ),
    few=True,
)
def _masked_key(probe: Probe) -> Steps:
    axis, length = key_axis(probe.contract), probe.sizes.get(key_axis(probe.contract), 1)
    if length < 2:
        raise Skip("with one position there is no other key to mask")
    first = int("causal" in probe.contract.promises)  # key 0 is all that query 0 has
    keys = sorted({first, length - 1, probe.random_integer(first, length)})
    ways = [Way(hide_key(probe, probe.draw("random"), key, length), key) for key in keys]
    loud = probe.random_integer(first, length)
    ways.append(Way(hide_key(probe, probe.draw("one-key", LOUD), loud, length), loud))
    ways += _in_one_sample(probe, loud, length)
    ways = probe.choose_ways(ways)
    outputs = yield [
        given
        for way in ways
        for given in (
            way.inputs,
            redraw(probe, way.inputs, axis, slice(way.key, way.key + 1)),
        )
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
    mask[last] = hide_key(probe, inputs, key, length)[spec.name][last]
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
    failure = Failure(
        message=f"key {key} was masked for every query{where}; changing position {key} still "
        f"changed the output at {first_index(gap)}"
    )
    if axis != "S" or "S" not in axes:
        return failure
    rows = gap.movedim(axes.index("S"), 0).flatten(1).any(1).nonzero().flatten().tolist()
    return joined_heads(probe, failure, key, rows)


# ---------------------------------------------------------------- padding invariance


@check(
    id="padding-invariance",
    title="Masked padding changes nothing",
    needs=("keys",),
    tier=Tier.HEADS,
    advice=(
        "Compare the output with padding and the output without, step by "
        "step: the first step whose real rows differ counts positions that are not there."
    ),
    few=True,
)
def _masked_padding(probe: Probe) -> Steps:
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
    pairs = [_padded_and_alone(probe, part, length) for part in real]
    outputs = yield [inputs for pair in pairs for inputs in pair]
    for part, padded, alone in zip(real, outputs[::2], outputs[1::2], strict=True):
        failure = _padding_matters(probe, part, length, padded, alone)
        if failure:
            return failure
    return None


def _real_queries(contract: Contract, real: slice) -> slice:
    """The queries that are no padding."""
    return real if key_axis(contract) == query_axis(contract) else slice(None)


def _padded_and_alone(probe: Probe, real: slice, length: int) -> tuple[Inputs, Inputs]:
    """Inputs with all but these keys masked, and these keys alone."""
    contract, spec = probe.contract, mask_input(probe.contract)
    inputs = probe.draw("random")
    mask = inputs[spec.name].clone()
    if mask.shape[-1] != length:
        raise Skip("the mask's last axis is not that of the keys")
    mask[..., real.start] = not spec.forbids  # every query keeps a key
    if has_query_axis(spec) and key_axis(contract) == query_axis(contract):
        rows = [*range(real.start), *range(real.stop, length)]
        mask[..., rows, :] = mask[..., [real.start], :].clone()  # padding sees no more
    mask[..., : real.start] = spec.forbids
    mask[..., real.stop :] = spec.forbids
    inputs[spec.name] = mask
    return inputs, cut_positions(contract, inputs, _real_queries(contract, real), real)


def _padding_matters(
    probe: Probe, real: slice, length: int, padded: Tensor, alone: Tensor
) -> Failure | None:
    queries, output = query_axis(probe.contract), probe.contract.output
    if queries in output:
        at = output.index(queries)
        padded = padded.movedim(at, 0)[_real_queries(probe.contract, real)].movedim(0, at)
    gap = beyond_rounding(probe, alone, padded)
    if not gap.any().item():
        return None
    side = "before" if real.start else "behind"
    count = length - (real.stop - real.start)
    off = (alone - padded).abs().max().item()
    return Failure(
        message=f"{count} masked position{'s' * (count > 1)} {side} the others changed the output "
        f"at {first_index(gap)} of the real ones, by up to {off:.2g}"
    )


# ---------------------------------------------------------------- nan in masked slots


@check(
    id="nan-in-masked-slots",
    title="NaN at masked keys stays there",
    needs=("keys", "nan-safe", "floats"),
    tier=Tier.WEIGHTS,
    advice="Fill keys and values with 0 where the mask forbids them for every query.",
    few=True,
)
def _masked_nan(probe: Probe) -> Steps:
    axis, spec = key_axis(probe.contract), mask_input(probe.contract)
    length = probe.sizes.get(axis, 1)
    if length < 2:
        raise Skip("with one position there is no other key to mask")
    ways = [(_with_masked_key(probe, spec, length), garbage) for garbage in GARBAGE]
    outputs = yield [
        given
        for (inputs, key), garbage in ways
        for given in (inputs, _spoiled(probe, inputs, key, garbage))
    ]
    for ((_, key), garbage), before, after in zip(ways, outputs[::2], outputs[1::2], strict=True):
        gap = beyond_rounding(probe, before, after)
        if axis == query_axis(probe.contract) and axis in probe.contract.output:
            gap.select(probe.contract.output.index(axis), key).fill_(False)
        if gap.any().item():
            return Failure(
                message=f"key {key} was masked for every query and holds {garbage}; it reached "
                f"{int(gap.sum().item())} values of the output, the first at {first_index(gap)}"
            )
    return None


def _with_masked_key(probe: Probe, spec: Input, length: int) -> tuple[Inputs, int]:
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

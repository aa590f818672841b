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

from typing import NamedTuple

from attnlab.catalogue.contract_facts import (
    data_inputs,
    has_query_axis,
    key_axis,
    mask_input,
    query_axis,
)
from attnlab.checks.base import Failure, Probe, Steps, Tier, check
from attnlab.checks.shared.compare import failure_at, far, first_failure, size_from_two
from attnlab.checks.shared.explain import joined_heads
from attnlab.checks.shared.inputs import beyond_rounding, cut_positions, hide_key, redraw
from attnlab.probe.answers import LOUD, Inputs, Skip, Tensor
from attnlab.records import Contract, Input

TITLE = "Masked keys change nothing"
GARBAGE = (float("nan"), float("inf"))


class Way(NamedTuple):
    """Inputs with a key that is hidden, in all samples or in one."""

    inputs: Inputs
    key: int
    sample: int | None = None


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
    length = size_from_two(
        probe, key_axis(probe.contract), "with one position there is no other key to mask"
    )
    first = int("causal" in probe.contract.promises)  # key 0 is all that query 0 has
    keys = sorted({first, length - 1, probe.random_integer(first, length)})
    ways = [Way(hide_key(probe, probe.draw("random"), key, length), key) for key in keys]
    loud = probe.random_integer(first, length)
    ways.append(Way(hide_key(probe, probe.draw("one-key", LOUD), loud, length), loud))
    ways = probe.choose_ways([*ways, *_in_one_sample(probe, loud, length)])
    outputs = yield [given for way in ways for given in (way.inputs, _with_other_key(probe, way))]
    found = zip(ways, outputs[::2], outputs[1::2], strict=True)
    return first_failure(_leaks(probe, before, after, way) for way, before, after in found)


def _with_other_key(probe: Probe, way: Way) -> Inputs:
    return redraw(probe, way.inputs, key_axis(probe.contract), slice(way.key, way.key + 1))


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


def _leaks(probe: Probe, before: Tensor, after: Tensor, way: Way) -> Failure | None:
    axes, key = probe.contract.output, way.key
    gap = _elsewhere(probe, far(before, after), key)
    if way.sample is not None:
        gap.narrow(axes.index("B"), 0, way.sample).fill_(False)
    where = "" if way.sample is None else f" of sample {way.sample}"
    failure = failure_at(
        gap,
        lambda at: (
            f"key {key} was masked for every query{where}; changing position {key} still "
            f"changed the output at {at}"
        ),
    )
    if failure is None or key_axis(probe.contract) != "S" or "S" not in axes:
        return failure
    rows = gap.movedim(axes.index("S"), 0).flatten(1).any(1).nonzero().flatten().tolist()
    return joined_heads(probe, failure, key, rows)


def _elsewhere(probe: Probe, gap: Tensor, key: int) -> Tensor:
    """Where outputs differ at other positions than that of the key, which is a query, too."""
    axis, axes = key_axis(probe.contract), probe.contract.output
    if axis == query_axis(probe.contract) and axis in axes:
        gap.select(axes.index(axis), key).fill_(False)
    return gap


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
    length = size_from_two(probe, axis, "one position leaves no room for padding")
    if axis not in probe.contract.vary:
        raise Skip("its length is fixed")
    more = probe.random_integer(1, max(2, min(4, length - 1)))  # where it can be, two keys stay
    promises = probe.contract.promises
    ordered = "averaging" not in promises or "causal" in promises
    real = probe.choose_ways([slice(0, length - more), slice(more, length)][: 1 if ordered else 2])
    outputs = yield [inputs for part in real for inputs in _padded_and_alone(probe, part, length)]
    found = zip(real, outputs[::2], outputs[1::2], strict=True)
    return first_failure(
        _padding_matters(probe, part, length, padded, alone) for part, padded, alone in found
    )


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
    keys = key_axis(probe.contract)
    if keys != queries and keys in output:  # the weights themselves: those of padding are cut off
        padded = padded.movedim(output.index(keys), 0)[real].movedim(0, output.index(keys))
    side = "before" if real.start else "behind"
    count = length - (real.stop - real.start)
    return failure_at(
        beyond_rounding(probe, alone, padded),
        lambda at: (
            f"{count} masked position{'s' * (count > 1)} {side} the others changed the "
            f"output at {at} of the real ones, by up to {(alone - padded).abs().max().item():.2g}"
        ),
    )


@check(
    id="nan-in-masked-slots",
    title="NaN at masked keys stays there",
    needs=("keys", "nan-safe", "floats"),
    tier=Tier.WEIGHTS,
    advice=(
        "Put a number at what the mask forbids, with masked_fill or where, before anything is "
        "added or multiplied: NaN plus -inf and 0 times NaN are NaN."
    ),
    few=True,
)
def _masked_nan(probe: Probe) -> Steps:
    length = size_from_two(
        probe, key_axis(probe.contract), "with one position there is no other key to mask"
    )
    ways = [_with_masked_key(probe, mask_input(probe.contract), length) for _ in GARBAGE]
    outputs = yield [
        given
        for way, garbage in zip(ways, GARBAGE, strict=True)
        for given in (way.inputs, _spoiled(probe, way.inputs, way.key, garbage))
    ]
    found = zip(ways, GARBAGE, outputs[::2], outputs[1::2], strict=True)
    return first_failure(
        _reached(probe, way.key, garbage, beyond_rounding(probe, before, after))
        for way, garbage, before, after in found
    )


def _reached(probe: Probe, key: int, garbage: float, gap: Tensor) -> Failure | None:
    gap = _elsewhere(probe, gap, key)
    return failure_at(
        gap,
        lambda at: (
            f"key {key} was masked for every query and holds {garbage}; it reached "
            f"{int(gap.sum().item())} values of the output, the first at {at}"
        ),
    )


def _with_masked_key(probe: Probe, spec: Input, length: int) -> Way:
    """Inputs with one key masked for every query."""
    first = int("causal" in probe.contract.promises)  # key 0 is all that query 0 has
    key = probe.random_integer(first, length)
    inputs = probe.draw("random")
    mask = inputs[spec.name].clone()
    mask[..., 0 if first else (key + 1) % length] = not spec.forbids
    mask[..., key] = spec.forbids
    return Way({**inputs, spec.name: mask}, key)


def _spoiled(probe: Probe, inputs: Inputs, key: int, garbage: float) -> Inputs:
    axis, found = key_axis(probe.contract), dict(inputs)
    for data in (d for d in data_inputs(probe.contract, axis) if d.dtype == "float"):
        new = inputs[data.name].clone()
        new.select(data.axes.index(axis), key).fill_(garbage)
        found[data.name] = new
    return found

"""The encoding of each position is what the formula of the task states.

For the sinusoidal encoding: PE[p, 2i] = sin(p * w_i) and PE[p, 2i+1] = cos(p * w_i) with
w_i = base ** (-2i / D): one frequency for each pair of columns. Rotary positions rotate pair i by
p * w_i. ALiBi adds -2 ** (-8h / H) times the distance for head h.

Wrong: an exponent that changes with every column gives sin and cos of a pair two frequencies.
Right: the exponent is that of the even column, for both.

Expected values are computed in float64. A table that is returned depends on the shape of x alone; a
table that is added is added to whatever x is, huge, infinite or NaN. Which columns form a pair
("interleaved": 2i and 2i + 1, "half": i and i + D/2) matters where the task says so.

With or without a formula: positions are counted along the sequence, not along the batch, so equal
samples get equal outputs. Wrong: `x + self.pe[: x.size(0)]` on x of shape (B, S, D).

Different positions differ: rows of a table are pairwise different, a rotated vector differs at each
position, a bias depends on the key, and a whole module gives another output when two earlier
positions are swapped. Wrong: a table whose rows were never filled; positions in float16.

A bias that falls with distance falls at every step, with another slope for each head. Wrong: the
sign the other way round; one slope for all heads.

Distances in buckets: with N for a direction, distance n has bucket n where n < N/2, else
N/2 + floor(N/2 * log(n / (N/2)) / log(distance / (N/2))), and at most N - 1.
"""

import math
from functools import partial

from attnlab.catalogue.contract_facts import data_inputs
from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import describe, expected_shape, far, size_from_two
from attnlab.checks.shared.formulas import (
    TOLERANCE,
    scaled_input,
    wrong_bucket,
    wrong_rotation,
    wrong_slopes,
    wrong_table,
)
from attnlab.checks.shared.inputs import change_along, first_along
from attnlab.checks.shared.positions import bias, equal_rows, first, offset, plain_inputs, rows
from attnlab.probe.answers import Skip, Tensor
from attnlab.records import Input, Position

TITLE = "The encoding follows its formula"
HUGE, ROUNDED = 1e3, 1e-6  # times x; of a sum that large
LEAST = 3


@check(
    id="formula-match",
    title="The encoding follows its formula",
    needs=("output", "position"),
    tier=Tier.SYMMETRY,
    advice="Work out D=4 by hand: w = [1, 0.01], row 1 is [0.8415, 0.5403, 0.0100, 1.0000].",
)
def _formula(probe: Probe) -> Failure | None:
    position = probe.contract.position
    assert position is not None
    if position.kind == "alibi":
        return wrong_slopes(bias(probe), causal=position.causal)
    if position.kind == "rotary":
        return _rotation_differs(probe, position)
    failure = _table_differs(probe, position)
    return failure or _of_the_shape_alone(probe, position) or _nothing_else(probe, position)


def _table_differs(probe: Probe, position: Position) -> Failure | None:
    inputs = probe.draw("none")
    out = probe.call(inputs).double()
    if tuple(out.shape) != expected_shape(probe):  # an empty table has no wrong value
        return Failure(message=f"the output is {describe(out, probe)} this time")
    x = inputs[first(probe)].double() if position.form == "added" else None
    table = out if x is None else out - x
    layouts = ["interleaved", "half"] if position.layout == "any" else [position.layout]
    for b in range(table.shape[0]):
        wrong = partial(wrong_table, table[b], position.base, b, sizes=probe.sizes)
        failures = [wrong(layout) for layout in layouts]
        if not all(failures):
            continue
        if x is None or x.shape != out.shape:
            return failures[0]
        scaled = (scaled_input(out[b], x[b], position.base, name, probe.sizes) for name in layouts)
        return next(filter(None, scaled), failures[0])
    return None


def _of_the_shape_alone(probe: Probe, position: Position) -> Failure | None:
    """A table that is returned is no function of x."""
    if position.form != "returned":
        return None
    inputs = probe.draw("none")
    before = probe.call(inputs)
    for value in (math.inf, math.nan):
        spoiled = inputs[first(probe)].clone()
        if not spoiled.is_floating_point():
            return None
        spoiled[...] = value
        after = probe.call({**inputs, first(probe): spoiled})
        if after.shape != before.shape or not (after == before).all().item():
            return Failure(
                message=f"the table changed when x was filled with {value}: it takes part of its "
                "values from x, and only x's shape should matter",
                advice="Look for x in the arithmetic of forward: 0 * x is not always 0.",
            )
    return None


def _nothing_else(probe: Probe, position: Position) -> Failure | None:
    """A table that is added leaves x as it is: nothing is cut off, and nothing is made a number."""
    inputs = probe.draw("none")
    x = inputs[first(probe)]
    if position.form != "added" or not x.is_floating_point():
        return None
    table = probe.call(inputs) - x
    spoiled = x * HUGE
    flat = spoiled.view(-1)
    flat[-1], flat[0] = math.inf, math.nan
    right, out = spoiled + table, probe.call({**inputs, first(probe): spoiled})
    limit = TOLERANCE + ROUNDED * right.abs()
    same = (out == right) | (out.isnan() & right.isnan()) | ((out - right).abs() <= limit)
    if same.all().item():
        return None
    at = (~same).nonzero()[0].tolist()
    return Failure(
        message=f"where x is {spoiled[tuple(at)].item():.5g}, at {at}, the output is "
        f"{out[tuple(at)].item():.5g}, expected {right[tuple(at)].item():.5g}: x and its row "
        "of the table",
        advice="Look for what forward does to x beside the sum: a clamp, a nan_to_num, a scale.",
    )


def _rotation_differs(probe: Probe, position: Position) -> Failure | None:
    inputs = probe.draw("none")
    axis = probe.contract.output.index("S")
    before = inputs[first(probe)].double().movedim(axis, 0).flatten(1, -2)
    after = probe.call(inputs).double().movedim(axis, 0).flatten(1, -2)
    layouts = ["interleaved", "half"] if position.layout == "any" else [position.layout]
    failures = [wrong_rotation(before, after, position.base, layout) for layout in layouts]
    return failures[0] if all(failures) else None


@check(
    id="batch-axis-use",
    title="Equal samples get equal outputs",
    needs=("output", "batch", "ordered"),
    tier=Tier.SAMPLES,
    advice=(
        "Look at the index of the table: x.size(0) is the batch; positions run along x.size(1)."
    ),
)
def _equal_samples(probe: Probe) -> Failure | None:
    size_from_two(probe, "B", "a batch of one has one sample only")
    inputs = change_along(probe, probe.draw("none"), "B", first_along)
    out = probe.call(inputs).movedim(probe.contract.output.index("B"), 0)
    gap = far(out, out[:1].expand_as(out)).flatten(1).any(1)
    if gap.any().item():
        b = gap.tolist().index(True)
        largest = (out[b] - out[0]).abs().max().item()
        return Failure(
            message=f"all samples of the batch were equal, and the output of sample {b} differs "
            f"from that of sample 0 by up to {largest:.2g}"
        )
    return None


@check(
    id="position-sensitivity",
    title="Positions can be told apart",
    needs=("output", "ordered"),
    tier=Tier.ORDER,
    advice="Feed zeros and print two rows of the result: what is added must differ.",
    few=True,
)
def _distinct_positions(probe: Probe) -> Failure | None:
    position = probe.contract.position
    if position is None:
        return _unordered(probe)
    if position.form == "bias":
        return _constant_bias(bias(probe))
    table = rows(probe)
    if len(table) < 2:
        raise Skip("there is one position only")
    pair = equal_rows(table)
    if pair is None:
        return None
    return Failure(
        message=f"positions {pair[0]} and {pair[1]} of {len(table)} get the same encoding"
    )


def _constant_bias(added: Tensor) -> Failure | None:
    """A head whose bias is the same for all keys says nothing of positions."""
    if added.shape[-1] < 2:
        raise Skip("there is one key only")
    for head, values in enumerate(added):
        if not values.abs().max().item() > 0:
            return Failure(message=f"the bias of head {head} is the same for every key")
    return None


def _unordered(probe: Probe) -> Failure | None:
    if "S" not in probe.contract.output or probe.sizes.get("S", 0) < LEAST:
        raise Skip("too few positions to exchange two before the last")
    last = probe.sizes["S"] - 1
    inputs = probe.draw("none")
    other = dict(inputs)
    for spec in _vectors(probe):
        moved = inputs[spec.name].clone().movedim(spec.axes.index("S"), 0)
        moved[[last - 2, last - 1]] = moved[[last - 1, last - 2]]
        other[spec.name] = moved.movedim(0, spec.axes.index("S")).contiguous()
    at = probe.contract.output.index("S")
    before, after = probe.call(inputs), probe.call(other)
    if far(before.select(at, last), after.select(at, last)).any().item() or _uneven(probe, at):
        return None
    return Failure(
        message=f"positions {last - 2} and {last - 1} of the input were swapped, and the output "
        f"at position {last} did not change: it does not know the order"
    )


def _vectors(probe: Probe) -> list[Input]:
    """What stands at positions; whole numbers beside vectors may say where these stand."""
    along = data_inputs(probe.contract, "S")
    return [i for i in along if i.dtype == "float"] or along


def _uneven(probe: Probe, at: int) -> bool:
    """Equal inputs at all positions, none of them padding, do not give equal outputs."""
    inputs, pad = probe.draw("none"), probe.contract.padding_idx
    for spec in _vectors(probe):
        value = first_along(inputs[spec.name], spec.axes.index("S"))
        if pad is not None and spec.dtype == "int":
            value = value.masked_fill(value == pad, (pad + 1) % probe.sizes.get("V", 16))
        inputs[spec.name] = value
    out = probe.call(inputs)
    uneven: bool = far(out, first_along(out, at)).any().item()
    return uneven


@check(
    id="monotone-bias",
    title="The bias falls with distance",
    needs=("output", "monotone", "bias"),
    tier=Tier.WEIGHTS,
    advice="Print the last query's row of the bias: it falls with each key before its own.",
)
def _falling_bias(probe: Probe) -> Failure | None:
    position = probe.contract.position
    added = bias(probe)
    if min(added.shape[-2:]) < 2:
        raise Skip("with one query or one key nothing falls")
    before = added[:, -1].flip(-1)  # the last query's, from its own key backwards
    failure = _rises(before, "before", added.shape[-2] - 1)
    if failure is None and not (position is not None and position.causal):
        after = added[:, 0, offset(added) :]
        failure = _rises(after, "after", 0)
    return failure or _same_slopes(before)


def _rises(row: Tensor, side: str, query: int) -> Failure | None:
    """(H, distances): each value is below the one before."""
    bad = ~(row[:, 1:] < row[:, :-1])
    if not bad.any().item():
        return None
    head, d = bad.nonzero()[0].tolist()
    near, away = row[head, d].item(), row[head, d + 1].item()
    return Failure(
        message=f"head {head}, query {query}: the key {d + 1} positions {side} it gets a bias of "
        f"{away:.4g}, the one {d} away {near:.4g}; it should get less"
    )


def _same_slopes(row: Tensor) -> Failure | None:
    slopes = [round(v, 6) for v in row[:, 1].tolist()]
    for head, slope in enumerate(slopes):
        if slope in slopes[:head]:
            other = slopes.index(slope)
            return Failure(message=f"heads {other} and {head} have the same slope, {-slope:.4g}")
    return None


@check(
    id="bucket-resolution",
    title="Distances fall into their buckets",
    needs=("output", "bucketed", "bias"),
    tier=Tier.WEIGHTS,
    advice="Print the buckets of distances 0 to 20 and compare them with the formula.",
    once=True,
)
def _buckets(probe: Probe) -> Failure | None:
    position = probe.contract.position
    assert position is not None
    length = position.distance + 3
    wide = probe.variant({"Sq": length, "Sk": length, **({"B": 1} if "B" in probe.sizes else {})})
    out = wide.call(plain_inputs(wide))
    added = out.reshape(-1, *out.shape[-3:])[0]
    past = added[:, -1].flip(-1)  # of the last query: distance 0, 1, 2, ... backwards
    failure = wrong_bucket(past, position, "before")
    if failure or position.causal:
        return failure
    return wrong_bucket(added[:, 0], position, "after") or _same_on_both_sides(added)


def _same_on_both_sides(added: Tensor) -> Failure | None:
    middle = added.shape[-1] // 2
    if (added[:, middle, middle - 1] == added[:, middle, middle + 1]).all().item():
        return Failure(message="the key before a query and the one after it get the same bias")
    return None

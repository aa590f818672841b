"""What is said of each position is the formula that the task states.

For the sinusoidal encoding: PE[p, 2i] = sin(p * w_i) and PE[p, 2i+1] = cos(p * w_i) with
w_i = base ** (-2i / D). One frequency per pair of columns; low i is the fast oscillation. Rotary
positions turn pair i by p * w_i; ALiBi adds -2 ** (-8h / H) times the distance for head h.

Wrong: an exponent that grows with every column gives sin and cos of a pair two frequencies.
Right: the exponent is that of the even column, for both.

The expected values are computed here in float64. What is compared is the output where forward
returns the table, and output minus input where it adds it. A table that is returned depends on x's
shape alone: where x is NaN and infinite, it is the same. A table that is added is added to whatever
x is, huge, infinite or NaN. Which columns make a pair ("interleaved":
2i and 2i + 1, "half": i and i + D/2) matters where the task says so.
"""

import math

from attnlab.checks.base import Failure, Probe, Tensor, Tier, describe, expected_shape
from attnlab.checks.shared.positions import bias, first, offset, slopes
from attnlab.records import Position

TITLE = "The encoding follows its formula"
NEEDS = ("output", "position")
TIER = Tier.SYMMETRY
ADVICE = "Work out D=4 by hand: w = [1, 0.01], and row 1 is [0.8415, 0.5403, 0.0100, 0.99995]."
TURNED = "Turn the vector (1, 0, 0, 0) to position 1 by hand: which two columns change?"
SLOPES = "Print the slopes for this number of heads and compare with the paper's."
HUGE, ROUNDED = 1e3, 1e-6  # times x; of a sum that large
TOLERANCE = 2e-4  # float32 angles at position 100 are off by 1e-5, the subtraction by as much


def run(probe: Probe) -> Failure | None:
    position = probe.contract.position
    assert position is not None
    if position.kind == "alibi":
        return _slopes(bias(probe), causal=position.causal)
    if position.kind == "rotary":
        return _turned(probe, position)
    failure = _table(probe, position)
    return failure or _of_the_shape_alone(probe, position) or _nothing_else(probe, position)


# ---------------------------------------------------------------- a table


def _table(probe: Probe, position: Position) -> Failure | None:
    inputs = probe.draw("none")
    out = probe.call(inputs).double()
    if tuple(out.shape) != expected_shape(probe):  # an empty table has no wrong value
        return Failure(message=f"the output is {describe(out, probe)} this time")
    if position.form == "added":
        out = out - inputs[first(probe)].double()
    for b in range(out.shape[0]):
        layouts = ["interleaved", "half"] if position.layout == "any" else [position.layout]
        failures = [_compare(out[b], position.base, b, layout) for layout in layouts]
        if all(failures):
            return failures[0]
    return None


def _compare(table: Tensor, base: float, b: int, layout: str) -> Failure | None:
    length, width = table.shape
    pairs = [_pair(column, width, layout) for column in range(width)]
    rates = table.new_tensor([base ** (-2 * pair / width) for pair, _ in pairs])
    quarter = table.new_tensor([second * math.pi / 2 for _, second in pairs])  # a cosine's lead
    right = (table.new_tensor(range(length)).unsqueeze(1) * rates + quarter).sin()
    bad = ~((table - right).abs() <= TOLERANCE)
    if not bad.any().item():
        return None
    p, column = bad.nonzero()[0].tolist()
    pair, second = pairs[column]
    return Failure(
        message=f"at position {p}, column {column} of {width} (length {length}, sample {b}) the "
        f"encoding is {table[p, column].item():.5f}, expected {'cos' if second else 'sin'}"
        f"({p} * {base:g}^(-{2 * pair}/{width})) = {right[p, column].item():.5f}"
    )


def _pair(column: int, width: int, layout: str) -> tuple[int, int]:
    """Which pair a column belongs to, and 1 for its cosine."""
    if layout == "half":
        second, pair = divmod(column, max(1, width // 2))
        return pair, second
    return divmod(column, 2)


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


# ---------------------------------------------------------------- vectors that turn


def _turned(probe: Probe, position: Position) -> Failure | None:
    inputs = probe.draw("none")
    axis = probe.contract.output.index("S")
    before = inputs[first(probe)].double().movedim(axis, 0).flatten(1, -2)
    after = probe.call(inputs).double().movedim(axis, 0).flatten(1, -2)
    layouts = ["interleaved", "half"] if position.layout == "any" else [position.layout]
    failures = [_unturned(before, after, position.base, layout) for layout in layouts]
    return failures[0] if all(failures) else None


def _unturned(before: Tensor, after: Tensor, base: float, layout: str) -> Failure | None:
    """(S, vectors, D): every pair at position p turned by p * w_i."""
    width = before.shape[-1]
    half = width // 2
    for pair in range(half):
        i, j = (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + half)
        frequency = base ** (-2 * pair / width)
        for p in range(len(before)):
            cos, sin = math.cos(p * frequency), math.sin(p * frequency)
            a, b = before[p, :, i], before[p, :, j]
            gap = (after[p, :, i] - (a * cos - b * sin)).abs()
            gap = gap.maximum((after[p, :, j] - (a * sin + b * cos)).abs())
            limit = TOLERANCE * max(1.0, before[p].abs().max().item())
            if not (gap <= limit).all().item():
                return Failure(
                    message=f"at position {p} columns {i} and {j} of {width} are not turned by "
                    f"{p} * {base:g}^(-{2 * pair}/{width}) = {p * frequency:.5f} radians: they "
                    f"are off by up to {gap.max().item():.2g}",
                    advice=TURNED,
                )
    return None


# ---------------------------------------------------------------- a bias


def _slopes(added: Tensor, causal: bool) -> Failure | None:
    heads, queries, keys = added.shape
    right = slopes(heads)
    start = offset(added)
    for h, matrix in enumerate(added.tolist()):
        for i in range(queries):
            for j in range(min(keys, start + i + 1) if causal else keys):
                expected = -right[h] * abs(j - start - i)
                if not abs(matrix[i][j] - expected) <= TOLERANCE * max(1.0, -expected):
                    return Failure(
                        message=f"head {h} of {heads}: query {i} and key {j} are "
                        f"{abs(j - start - i)} apart and get {matrix[i][j]:.5f}, expected "
                        f"-{right[h]:.5f} times the distance = {expected:.5f}",
                        advice=SLOPES,
                    )
    return None

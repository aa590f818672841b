"""What formulas of positions give, and where an encoding differs. Not a check."""

import math

from attnlab.checks.base import Failure
from attnlab.checks.shared.explain import constant_factor, factor_name
from attnlab.checks.shared.positions import offset, slopes
from attnlab.probe.answers import Tensor
from attnlab.records import Position
from attnlab.sizes import Sizes

TURNED = "Turn the vector (1, 0, 0, 0) to position 1 by hand: which two columns change?"
SLOPES = "Print the slopes for this number of heads and compare with the paper's."
TOLERANCE = 2e-4  # float32 angles at position 100 are off by 1e-5, the subtraction by as much


def stated_table(like: Tensor, base: float, layout: str) -> Tensor:
    """The sinusoidal table of this shape."""
    length, width = like.shape
    pairs = [pair_of_column(column, width, layout) for column in range(width)]
    rates = like.new_tensor([base ** (-2 * pair / width) for pair, _ in pairs])
    quarter = like.new_tensor([second * math.pi / 2 for _, second in pairs])  # a cosine's lead
    return (like.new_tensor(range(length)).unsqueeze(1) * rates + quarter).sin()


def wrong_table(table: Tensor, base: float, b: int, layout: str, sizes: Sizes) -> Failure | None:
    length, width = table.shape
    right = stated_table(table, base, layout)
    bad = ~((table - right).abs() <= TOLERANCE)
    if not bad.any().item():
        return None
    factor = constant_factor(table, right, TOLERANCE)
    if factor is not None:
        return Failure(
            message=f"the whole table is {factor_name(factor, sizes)} times that of the formula",
            advice="Look for a factor, fixed or learned, that the table is multiplied by.",
        )
    p, column = bad.nonzero()[0].tolist()
    pair, second = pair_of_column(column, width, layout)
    return Failure(
        message=f"at position {p}, column {column} of {width} (length {length}, sample {b}) the "
        f"encoding is {table[p, column].item():.5f}, expected {'cos' if second else 'sin'}"
        f"({p} * {base:g}^(-{2 * pair}/{width})) = {right[p, column].item():.5f}"
    )


def scaled_input(out: Tensor, x: Tensor, base: float, layout: str, sizes: Sizes) -> Failure | None:
    """What to say where the right table is added to a multiple of x."""
    factor = constant_factor(out - stated_table(x, base, layout), x, TOLERANCE)
    if factor is None:
        return None
    return Failure(
        message=f"x is multiplied by {factor_name(factor, sizes)} before the table is added to it",
        advice="Look for a factor, fixed or learned, that x is multiplied by.",
    )


def pair_of_column(column: int, width: int, layout: str) -> tuple[int, int]:
    """Which pair a column belongs to, and 1 for its cosine."""
    if layout == "half":
        second, pair = divmod(column, max(1, width // 2))
        return pair, second
    return divmod(column, 2)


def wrong_rotation(before: Tensor, after: Tensor, base: float, layout: str) -> Failure | None:
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


def wrong_slopes(added: Tensor, causal: bool) -> Failure | None:
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


def bucket(n: int, position: Position) -> int:
    """The bucket of a distance in its own direction."""
    each = position.buckets if position.causal else position.buckets // 2
    exact = each // 2
    if n < exact:
        return n
    octaves = math.log(n / exact) / math.log(position.distance / exact)
    return min(each - 1, exact + int((each - exact) * octaves + 1e-9))


def wrong_bucket(row: Tensor, position: Position, side: str) -> Failure | None:
    """(H, distances): neighbours are equal within a bucket, and differ between two."""
    equal = (row[:, 1:] == row[:, :-1]).all(0).tolist()
    start = 1 if side == "after" else 0  # distance 0 belongs to the past
    for n in range(start, row.shape[-1] - 1):
        together = bucket(n, position) == bucket(n + 1, position)
        if equal[n] != together:
            come = "the same bias" if equal[n] else "different biases"
            want = "share a bucket" if together else "have buckets of their own"
            return Failure(
                message=f"keys {n} and {n + 1} positions {side} the query get {come}; with "
                f"{position.buckets} buckets up to distance {position.distance} they {want}"
            )
    return None

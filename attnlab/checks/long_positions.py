"""Positions near 5000 are as distinct as the first ones, in half precision too.

bfloat16 counts to 256 without gaps, float16 to 2048; beyond that, neighbours become one position.
So positions and angles are computed in float32 or wider, and only sine and cosine are rounded.

Wrong: `torch.arange(S, dtype=x.dtype)`; `self.inv_freq` as a buffer that `.to(bfloat16)` rounds,
with angles computed from it afterwards.
Right: angles in float32 whatever the type of the module, and the result cast to the type of x.

Half precision is looked at where the contract names it. Some rows of a sinusoidal table, or vectors
that rotary positions turn, are worked out by the formula as well, far and near: `positions % 4096`
keeps most neighbours apart. All this is done again with few columns and more than 33000 rows, or
than a larger number of the file: a table may end at 8192, a short integer at 32767, and a right
table that is made first at any number. A module that extends itself is not told how long a sequence
will be.
"""

import math

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.compare import first_failure
from attnlab.checks.shared.positions import first, plain_inputs, rows
from attnlab.probe.answers import Inputs, Tensor
from attnlab.records import Position

FAR = 5000  # rows of the usual table
SHORT = 3  # positions of the call before: what is cut for it must be there again
WIDTH, NARROW = 20, 4
MOST = 4 << 20  # numbers of such a call
FARTHEST = 33000  # rows of a narrow table: more than a short integer counts
BEYOND = (5120, 8191, 8192, 8193, 9999, 10000, 16383, 16384, 20000, 32767, 32768, 32769)
TAIL = 12  # positions that are compared with the next one
SOME = (127, 128, 255, 256, 257, 511, 512, 1023, 1024, 2047, 2048, 4095, 4096, 4097)
# Times the position: how far an angle may be off that float32 made. By a power or an exponential it
# is 1e-7, as a logarithm of position and frequency 7e-7.
ANGLE = 1.2e-6
ROUNDED = 4e-7  # of a sum of two products
SHARE = 0.1  # of the smallest step at the start: a smaller one at the end is a lost position
ROUNDING = 8  # times eps: what a cast of the table, or a turn in that type, explains
HALF = {"bfloat16": 2**-8, "float16": 2**-11}


@check(
    title="Far positions stay distinct",
    needs=("output", "places", "long"),
    tier=Tier.REGIMES,
    advice="Print how this row is made: position, frequency, angle; and compare with exact ones.",
    once=True,
)
def run(probe: Probe) -> Failure | None:
    far = probe.variant(_sizes(probe, FAR + probe.random_integer(1, TAIL), WIDTH, 2))
    near = far.variant({"S": SHORT})
    near.call(plain_inputs(near))
    failure = _wrong(probe, far, plain_inputs(far), SOME)
    if failure is not None:
        return failure
    longest = max((FARTHEST, *probe.numbers(FARTHEST, MOST // NARROW - TAIL)))
    far = probe.variant(_sizes(probe, longest + probe.random_integer(1, TAIL), NARROW, 1))
    inputs = plain_inputs(far)
    return None if inputs[first(far)].numel() > MOST else _wrong(probe, far, inputs, BEYOND)


def _wrong(probe: Probe, far: Probe, inputs: Inputs, some: tuple[int, ...]) -> Failure | None:
    """What is wrong with the rows of these inputs, in float32 or in half precision."""
    exact = rows(far, inputs)
    failure = _lost(exact, "float32") or _misplaced(probe, exact, inputs[first(far)], some)
    for dtype, eps in HALF.items():
        if failure is None and dtype in probe.contract.dtypes:
            half = probe.variant(far.sizes, dtype)
            like = plain_inputs(half)[probe.contract.inputs[0].name].dtype
            given = {n: t.to(like) if t.is_floating_point() else t for n, t in inputs.items()}
            table = rows(half, given).float()
            failure = _lost(table, dtype) or _table_failure(table, exact, dtype, eps)
    return failure


def _sizes(probe: Probe, length: int, width: int, batch: int) -> dict[str, int]:
    """A table this long takes some modules a while, so it is narrow where it may be."""
    position, vary = probe.contract.position, probe.contract.vary
    extends = position is not None and position.beyond == "extend"
    sizes = {"S": length, **({"M": length} if "M" in probe.sizes and not extends else {})}
    sizes |= {"B": batch} if "B" in vary else {}
    if "D" in vary and "H" not in probe.sizes:
        sizes["D"] = math.lcm(width, probe.contract.multiples.get("D", 1))
    return sizes


def _misplaced(
    probe: Probe, table: Tensor, vectors: Tensor, some: tuple[int, ...]
) -> Failure | None:
    """Rows that are not where the formula puts them; of rotary positions, one vector of these,
    (positions, samples, width), turned by what the formula says."""
    position = probe.contract.position
    places = (*some, *range(len(table) - TAIL, len(table)))
    if position is not None and position.kind == "sinusoidal" and not position.grid:
        return first_failure(
            _off(table, p, "row of", _waves(p, table.shape[-1], position.base), ANGLE * (1 + p))
            for p in places
        )
    if position is None or (position.kind, position.form) != ("rotary", "rotated"):
        return None
    one = vectors.flatten(0, -2)[0].tolist()
    room = 2 * max(map(abs, one))
    return first_failure(
        _off(
            table, p, "vector at", _rotations(one, p, position), (ANGLE * (1 + p) + ROUNDED) * room
        )
        for p in places
    )


def _off(
    table: Tensor, p: int, what: str, rights: list[list[float]], limit: float
) -> Failure | None:
    """Where a position's row is near none of those that are right."""
    gap = min((table[p] - table.new_tensor(right)).abs().max().item() for right in rights)
    if gap <= limit:
        return None
    return Failure(
        message=f"of {len(table)} positions, the {what} position {p} is off by up to "
        f"{gap:.2g} from the formula; float32 angles explain {limit:.2g}"
    )


def _rotations(one: list[float], p: int, position: Position) -> list[list[float]]:
    """The vector turned to position p, in each layout that the task lets choose."""
    layouts = ("interleaved", "half") if position.layout == "any" else (position.layout,)
    return [_rotate(one, p, position.base, layout) for layout in layouts]


def _rotate(one: list[float], p: int, base: float, layout: str) -> list[float]:
    width = len(one)
    half, turned = width // 2, list(one)
    for pair in range(half):
        i, j = (2 * pair, 2 * pair + 1) if layout == "interleaved" else (pair, pair + half)
        angle = p * base ** (-2 * pair / width)
        turned[i] = one[i] * math.cos(angle) - one[j] * math.sin(angle)
        turned[j] = one[i] * math.sin(angle) + one[j] * math.cos(angle)
    return turned


def _waves(p: int, width: int, base: float) -> list[list[float]]:
    """The row of position p, interleaved and in halves."""
    angles = [p * base ** (-2 * pair / width) for pair in range(width // 2)]
    row = [wave(angle) for angle in angles for wave in (math.sin, math.cos)]
    return [row, row[0::2] + row[1::2]]


def _steps(table: Tensor) -> Tensor:
    """How far each row is from the next one."""
    return (table[1:] - table[:-1]).flatten(1).abs().amax(1)


def _lost(table: Tensor, dtype: str) -> Failure | None:
    usual = _steps(table[:TAIL]).min().item()
    steps = _steps(table[-TAIL:])
    short = ~(steps > SHARE * usual)
    if not short.any().item():
        return None
    p = len(table) - TAIL + short.tolist().index(True)
    return Failure(
        message=f"in {dtype} positions {p} and {p + 1} are {steps.min().item():.2g} apart, while "
        f"the first ones are {usual:.2g} apart: they have become the same position"
    )


def _table_failure(table: Tensor, exact: Tensor, dtype: str, eps: float) -> Failure | None:
    gap = (table - exact).abs().flatten(1).amax(1)
    angles = ANGLE * gap.new_ones(len(gap)).cumsum(0)  # those of one may be float64
    limits = (ROUNDING * eps + angles) * max(1.0, exact.abs().max().item())
    bad = ~(gap <= limits)
    if not bad.any().item():
        return None
    p = bad.tolist().index(True)
    return Failure(
        message=f"in {dtype} the row of position {p} is off by up to {gap.max().item():.2g} from "
        f"float32's; rounding the result explains {limits[p].item():.2g}: angles were computed in "
        f"{dtype}"
    )

"""Names for axes, from sizes: "B", "3*D" where one symbol or product fits, else the number.

The example's sizes are small and coincide (B = H = 2, S = hd = 4), so one look at them names next
to nothing. Therefore the same code runs once more at sizes that no product confuses; a row that is
the same operation on the same line takes its names from there, as long as they also measure right
at the example's sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement

from attnlab.lab.raw import RawTrace, Shape
from attnlab.lab.sizes import Sizes, Unmeasured, measure

Axes = tuple[str, ...]


class Symbols:
    """Reads sizes back as symbols."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = dict(sizes)
        self.tiers = [_named(tier, sizes) for tier in _tiers(list(sizes))]

    def axes(self, shape: Shape) -> Axes:
        return tuple(self.fit(n) for n in shape)

    def fit(self, size: int) -> str:
        """The one symbol of this size, else the one product, else the number itself."""
        if size <= 1:
            return str(size)
        for tier in self.tiers:
            fits = tier.get(size, [])
            if len(fits) == 1:
                return fits[0]
            if fits:
                return str(size)
        return str(size)


def _tiers(symbols: list[str]) -> Iterator[list[str]]:
    yield symbols
    yield [f"{k}*{s}" for s in symbols for k in (2, 3, 4)] + [f"{s}/2" for s in symbols]
    for count in (2, 3):
        yield ["*".join(c) for c in combinations_with_replacement(symbols, count)]


def _named(expressions: list[str], sizes: Mapping[str, int]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for text in expressions:
        if text.endswith("/2") and sizes[text[:-2]] % 2:
            continue
        found.setdefault(measure(text, sizes), []).append(text)
    return found


def name_rows(
    raw: RawTrace, sizes: Sizes, shadow: RawTrace | None, shadow_sizes: Sizes | None
) -> list[Axes]:
    """The axes of every row's output."""
    here = Symbols(sizes)
    there = Symbols(shadow_sizes or {})
    twins = _twins(raw, shadow) if shadow else {}
    return [_named_shape(op.shape, twins.get(op.index), here, there, sizes) for op in raw.ops]


def name_operands(
    raw: RawTrace, sizes: Sizes, shadow: RawTrace | None, shadow_sizes: Sizes | None
) -> list[Axes]:
    """The axes of the operands of the operation that raised."""
    if raw.fall is None:
        return []
    here, there = Symbols(sizes), Symbols(shadow_sizes or {})
    other: tuple[Shape | None, ...] = ()
    if (
        shadow
        and shadow.fall
        and (shadow.fall.op, shadow.fall.line) == (raw.fall.op, raw.fall.line)
    ):
        other = shadow.fall.operands
    pairs = [
        (shape, other[i] if i < len(other) else None) for i, shape in enumerate(raw.fall.operands)
    ]
    return [_named_shape(shape, twin, here, there, sizes) for shape, twin in pairs]


def _twins(raw: RawTrace, shadow: RawTrace) -> dict[int, Shape]:
    """For each row, the shape of the same operation in the other run, while the two agree."""
    found: dict[int, Shape] = {}
    for mine, other in zip(raw.ops, shadow.ops, strict=False):
        if (mine.op, mine.line, len(mine.shape)) != (other.op, other.line, len(other.shape)):
            break
        found[mine.index] = other.shape
    return found


def _named_shape(
    shape: Shape, twin: Shape | None, here: Symbols, there: Symbols, sizes: Sizes
) -> Axes:
    if twin is None or len(twin) != len(shape):
        return here.axes(shape)
    return tuple(_agreed(n, there.fit(m), here, sizes) for n, m in zip(shape, twin, strict=True))


def _agreed(size: int, name: str, here: Symbols, sizes: Sizes) -> str:
    try:
        return name if measure(name, sizes) == size else here.fit(size)
    except Unmeasured:
        return here.fit(size)

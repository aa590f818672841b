"""Names for axes, from sizes: "B", "3*D" where one symbol or product fits, else the number.

The example's sizes are small and coincide (B = H = 2, S = hd = 4), so one look at them names next
to nothing. Therefore the same code runs once more at sizes that no product confuses; a row that is
the same operation on the same line takes its names from there, as long as they also measure right
at the example's sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement
from typing import NamedTuple

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


class Run(NamedTuple):
    """A raw trace and the sizes it was made at."""

    raw: RawTrace
    sizes: Sizes


def name_rows(run: Run, telling: Run | None) -> list[Axes]:
    """The axes of every row's output."""
    twins = _twins(run.raw, telling.raw) if telling else {}
    return _named_shapes([(op.shape, twins.get(op.index)) for op in run.raw.ops], run, telling)


def name_operands(run: Run, telling: Run | None) -> list[Axes]:
    """The axes of the operands of the operation that raised."""
    fall = run.raw.fall
    if fall is None:
        return []
    other = telling.raw.fall if telling else None
    same = other is not None and (other.op, other.line) == (fall.op, fall.line)
    twins = dict(enumerate(other.operands)) if other is not None and same else {}
    return _named_shapes([(s, twins.get(i)) for i, s in enumerate(fall.operands)], run, telling)


def input_axes(run: Run, telling: Run | None) -> list[Axes]:
    """The axes of the inputs."""
    twins = dict(enumerate(telling.raw.inputs)) if telling else {}
    return _named_shapes([(s, twins.get(i)) for i, s in enumerate(run.raw.inputs)], run, telling)


def _twins(raw: RawTrace, shadow: RawTrace) -> dict[int, Shape]:
    """For each row, the shape of the same operation in the other run, while the two agree."""
    found: dict[int, Shape] = {}
    for mine, other in zip(raw.ops, shadow.ops, strict=False):
        if (mine.op, mine.line, len(mine.shape)) != (other.op, other.line, len(other.shape)):
            break
        found[mine.index] = other.shape
    return found


def _named_shapes(
    shapes: list[tuple[Shape, Shape | None]], run: Run, telling: Run | None
) -> list[Axes]:
    """Names from the twin's shape where there is one, else from the shape's own sizes."""
    here = Symbols(run.sizes)
    there = Symbols(telling.sizes) if telling else here
    return [
        tuple(_agreed(n, there.fit(m), here) for n, m in zip(shape, twin, strict=True))
        if twin is not None and len(twin) == len(shape)
        else here.axes(shape)
        for shape, twin in shapes
    ]


def _agreed(size: int, name: str, here: Symbols) -> str:
    """The name that the telling sizes gave, if it measures right at these."""
    try:
        return name if measure(name, here.sizes) == size else here.fit(size)
    except Unmeasured:
        return here.fit(size)

"""The names of a run's axes, agreed upon with a second run at other sizes.

The example's sizes are small and coincide (B = H = 2, S = hd = 4), so what a layer made cannot
always be told from its size there. Therefore the same code runs once more at sizes that no product
confuses; a row that is the same operation on the same line takes its names from there, as long as
they also measure right at the example's sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from attnlab.sizes import Sizes, Unmeasured, measure
from attnlab.tracer.axes.symbols import Symbols as Symbols  # noqa: PLC0414  read from here by many
from attnlab.tracer.raw_trace import RawTrace, Shape

Axes = tuple[str, ...]


class Run(NamedTuple):
    """A raw trace and the sizes it was made at."""

    raw: RawTrace
    sizes: Sizes


def name_rows(run: Run, telling: Run | None) -> list[Axes]:
    """The axes of every row's output."""
    twins = _twins(run.raw, telling.raw) if telling else {}
    return [_named(op.shape, op.axes, twins.get(op.index), run.sizes) for op in run.raw.ops]


def name_operands(run: Run, telling: Run | None) -> list[Axes]:
    """The axes of the operands of the operation that raised."""
    fall = run.raw.fall
    if fall is None:
        return []
    other = telling.raw.fall if telling else None
    same = other is not None and (other.op, other.line) == (fall.op, fall.line)
    twins = telling.raw.fall_axes if telling and same else ()
    return _each(fall.operands, run.raw.fall_axes, twins, run.sizes)


def input_axes(run: Run, telling: Run | None) -> list[Axes]:
    """The axes of the inputs."""
    twins = telling.raw.input_axes if telling else ()
    return _each(run.raw.inputs, run.raw.input_axes, twins, run.sizes)


def _each(
    shapes: Sequence[Shape], own: Sequence[Axes], twins: Sequence[Axes], sizes: Sizes
) -> list[Axes]:
    """The same for tensors that are no rows; what was not named has its sizes for names."""
    return [
        _named(
            shape,
            own[i] if i < len(own) else tuple(map(str, shape)),
            twins[i] if i < len(twins) else None,
            sizes,
        )
        for i, shape in enumerate(shapes)
    ]


def _twins(raw: RawTrace, shadow: RawTrace) -> dict[int, Axes]:
    """For each row, the names of the same operation in the other run, while the two agree."""
    found: dict[int, Axes] = {}
    for mine, other in zip(raw.ops, shadow.ops, strict=False):
        if (mine.op, mine.line, len(mine.shape)) != (other.op, other.line, len(other.shape)):
            break
        found[mine.index] = other.axes
    return found


def _named(shape: Shape, own: Axes, twin: Axes | None, sizes: Sizes) -> Axes:
    if twin is None or len(twin) != len(shape):
        return own
    return tuple(_agreed(n, a, b, sizes) for n, a, b in zip(shape, own, twin, strict=True))


def _agreed(size: int, own: str, other: str, sizes: Sizes) -> str:
    """The name that the telling sizes gave, if it measures right at these."""
    try:
        fits = measure(other.replace("'", ""), sizes) == size
    except Unmeasured:  # named after a layer
        return other
    return other if fits else own

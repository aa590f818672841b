"""The names of a run's axes, agreed upon with a second run at other sizes.

The example's sizes are small and coincide (B = H = 2, S = hd = 4), so what a layer made cannot
always be told from its size there. Therefore the same code runs once more at sizes that no product
confuses; a row that is the same operation on the same line takes its names from there, as long as
they also measure right at the example's sizes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from attnlab.sizes import Sizes, UnknownSize, measure
from attnlab.tracer.raw_trace import RawTrace, Shape

Axes = tuple[str, ...]


class SizedTrace(NamedTuple):
    """A raw trace and the sizes it was made at."""

    raw: RawTrace
    sizes: Sizes


def name_rows(run: SizedTrace, distinct: SizedTrace | None) -> list[Axes]:
    """The axes of every row's output."""
    twins = _matching_names(run.raw, distinct.raw) if distinct else {}
    return [_agreed_names(op.shape, op.axes, twins.get(op.index), run.sizes) for op in run.raw.ops]


def name_operands(run: SizedTrace, distinct: SizedTrace | None) -> list[Axes]:
    """The axes of the operands of the operation that raised."""
    crash = run.raw.crash
    if crash is None:
        return []
    other = distinct.raw.crash if distinct else None
    same = other is not None and (other.op, other.line) == (crash.op, crash.line)
    twins = distinct.raw.crash_axes if distinct and same else ()
    return _name_tensors(crash.operands, run.raw.crash_axes, twins, run.sizes)


def input_axes(run: SizedTrace, distinct: SizedTrace | None) -> list[Axes]:
    """The axes of the inputs."""
    twins = distinct.raw.input_axes if distinct else ()
    return _name_tensors(run.raw.inputs, run.raw.input_axes, twins, run.sizes)


def _name_tensors(
    shapes: Sequence[Shape], own: Sequence[Axes], twins: Sequence[Axes], sizes: Sizes
) -> list[Axes]:
    """The same for tensors that are no rows; what was not named has its sizes for names."""
    return [
        _agreed_names(
            shape,
            own[i] if i < len(own) else tuple(map(str, shape)),
            twins[i] if i < len(twins) else None,
            sizes,
        )
        for i, shape in enumerate(shapes)
    ]


def _matching_names(raw: RawTrace, shadow: RawTrace) -> dict[int, Axes]:
    """For each row, the names of the same operation in the other run, while the two agree."""
    found: dict[int, Axes] = {}
    for mine, other in zip(raw.ops, shadow.ops, strict=False):
        if (mine.op, mine.line, len(mine.shape)) != (other.op, other.line, len(other.shape)):
            break
        found[mine.index] = other.axes
    return found


def _agreed_names(shape: Shape, own: Axes, twin: Axes | None, sizes: Sizes) -> Axes:
    if twin is None or len(twin) != len(shape):
        return own
    return tuple(_agreed_name(n, a, b, sizes) for n, a, b in zip(shape, own, twin, strict=True))


def _agreed_name(size: int, own: str, other: str, sizes: Sizes) -> str:
    """The name that the telling sizes gave, if it measures right at these."""
    try:
        fits = measure(other.replace("'", ""), sizes) == size
    except UnknownSize:  # named after a layer
        return other
    return other if fits else own

"""What the axes of every tensor are, inferred from where they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from attnlab.tracer.axes.engine import Accident, Flow
from attnlab.tracer.axes.rules import load
from attnlab.tracer.rows import Replay

Named = tuple[str, ...]
__all__ = ["Accident", "Axes", "follow"]


class Axes(NamedTuple):
    """The names of all axes of a run, and the meetings that should not be."""

    outs: list[Named]  # by output, as the rows count them
    inputs: list[Named]
    fall: list[Named]  # of the operands of what raised
    accidents: list[Accident]


@cache
def _rules() -> Mapping[str, Any]:
    return load()


def follow(
    replay: Replay,
    shapes: Sequence[tuple[int, ...]],
    named: Sequence[Sequence[str] | None],
    sizes: Mapping[str, int],
) -> Axes:
    """The axes of every row. `named` are the user's names for the inputs, `sizes` their sizes."""
    flow = Flow(sizes, _rules())
    for shape, names in zip(shapes, named, strict=True):
        flow.feed(shape, names)
    for row in replay.rows:
        flow.step(row)
    flow.names.final = {}
    fall = [
        flow.operand(shape, source)
        for shape, source in zip(replay.fall_operands, replay.fall_sources, strict=True)
    ]
    return Axes(
        outs=[flow.names.shape(arr.axes) for arr in flow.made],
        inputs=[flow.names.shape(arr.axes) for arr in flow.inputs],
        fall=[flow.names.shape(arr.axes) for arr in fall],
        accidents=list(flow.accidents()),
    )

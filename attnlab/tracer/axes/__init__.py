"""Names for the axes of every tensor, inferred from where the axes came from."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from attnlab.tracer.axes.engine import AxisFinding, Flow
from attnlab.tracer.axes.rules import load
from attnlab.tracer.rows import Replay

Named = tuple[str, ...]
__all__ = ["Axes", "AxisFinding", "follow"]


class Axes(NamedTuple):
    """The names of all axes of a run, and the findings on axes."""

    outs: list[Named]  # by output, as the rows count them
    inputs: list[Named]
    crash: list[Named]  # of the operands of what raised
    findings: list[AxisFinding]


def follow(
    replay: Replay,
    shapes: Sequence[tuple[int, ...]],
    named: Sequence[Sequence[str] | None],
    sizes: Mapping[str, int],
) -> Axes:
    """The axes of every row. `named` are the user's names for the inputs, `sizes` their sizes."""
    flow = Flow(sizes, load())
    for shape, names in zip(shapes, named, strict=True):
        flow.add_input(shape, names)
    fed = dict(zip(replay.fed, named, strict=False))
    for row in replay.rows:
        flow.add_row(row)
        for made in range(len(flow.made) - len(row.outs), len(flow.made)):
            flow.name_made(made, fed.get(made) or ())
    if replay.outputs:
        flow.end_at(replay.outputs[0])
    flow.names.final = {}
    crash = [
        flow.operand(shape, source)
        for shape, source in zip(replay.crash_operands, replay.crash_sources, strict=True)
    ]
    return Axes(
        outs=[flow.names.shape(arr.axes) for arr in flow.made],
        inputs=[flow.names.shape(arr.axes) for arr in flow.inputs],
        crash=[flow.names.shape(arr.axes) for arr in crash],
        findings=list(flow.findings()),
    )

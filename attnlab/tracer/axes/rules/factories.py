"""Operations that make tensors out of numbers: their axes take the names of what they meet.

Those that only fill (zeros, rand, eye) need no rule: their axes are anonymous, as without one.
"""

from __future__ import annotations

from attnlab.tracer.axes.atoms import Axes, anonymous
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Call


def count(flow: Flow, call: Call) -> Axes:
    """What runs along 0, 1, 2, ... stands for positions, entries or features."""
    return anonymous(call.shape, "count")


def outer(flow: Flow, call: Call) -> Axes:
    return [axis for arr in call.arrays for axis in arr.axes]


def meshgrid(flow: Flow, call: Call) -> list[Axes]:
    axes = outer(flow, call)
    if call.kwargs.get("indexing") == "xy" and len(axes) > 1:
        axes[:2] = axes[1::-1]
    return [list(axes) for _ in call.outs]


RULES = {
    **dict.fromkeys(("arange", "linspace", "logspace", "range"), count),
    **dict.fromkeys(("outer", "ger", "cartesian_prod"), outer),
    "meshgrid": meshgrid,
}

"""Operations that make tensors out of nothing: their axes take the names of what they meet."""

from __future__ import annotations

from attnlab.tracer.axes.atoms import Axes, anonymous
from attnlab.tracer.axes.engine import Flow
from attnlab.tracer.axes.op_call import Call, words


def fresh(flow: Flow, call: Call) -> list[Axes]:
    return [anonymous(s) for s in call.outs]


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
    **dict.fromkeys(
        words(
            """
    zeros ones full empty rand randn randint randperm eye tensor as_tensor new_zeros
    new_ones new_full new_empty new_tensor scalar_tensor empty_strided tril_indices
    triu_indices nonzero unique bincount from_numpy
    """
        ),
        fresh,
    ),
    **dict.fromkeys(("arange", "linspace", "logspace", "range"), count),
    **dict.fromkeys(("outer", "ger", "cartesian_prod"), outer),
    "meshgrid": meshgrid,
}

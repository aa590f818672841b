"""A tensor as a matrix to draw: the last two axes, the others at index 0."""

import torch
from torch import Tensor

from attnlab.records.trace import Heat

MOST = 64  # rows and columns


def to_heat(t: Tensor, title: str, axes: tuple[str, ...] = (), index: int | None = None) -> Heat:
    """The last two axes of a tensor. `title` says what it is, the slice and the line follow."""
    t = t.detach()
    names = axes if len(axes) == t.dim() else tuple(map(str, t.shape))
    matrix = _matrix(t)
    rows = matrix[:MOST, :MOST].to("cpu", torch.float64)
    return Heat(
        title=title,
        rows=tuple(tuple(float(f"{v:.6g}") for v in row) for row in rows.tolist()),
        axes=(names[-2] if len(names) > 1 else "", names[-1] if names else ""),
        index=index,
        cut=matrix.shape[0] > MOST or matrix.shape[1] > MOST,
    )


def unwrap(t: Tensor) -> Tensor:
    """The tensor inside a torch.func wrapper; inside a vmap the whole batch, its axis first."""
    inner = torch._C._functorch
    while inner.is_functorch_wrapped_tensor(t):
        axis = inner.maybe_get_bdim(t)
        t = inner.get_unwrapped(t)
        t = t.movedim(axis, 0) if axis > 0 else t
    return t


def slice_text(t: Tensor) -> str:
    """Which part of a tensor is drawn: `[0, 0, :, :]`, or nothing where it is all of it."""
    outer = ["0"] * (t.dim() - 2)
    return f"[{', '.join([*outer, ':', ':'])}]" if outer else ""


def _matrix(t: Tensor) -> Tensor:
    if t.is_complex():
        t = t.abs()
    while t.dim() > 2:
        t = t[0]
    return t.reshape(1, -1) if t.dim() < 2 else t

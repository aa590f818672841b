"""What is seen while the copy runs: masks that are triangles, the line at which samples mix."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlab.tracer.raw_trace import display_path
from attnlab.tracer.recorder import TORCH, user_location

# Operations by which a mask reaches scores or weights.
MASKING = {
    *("masked_fill", "masked_fill_", "where", "add", "add_", "__add__", "__iadd__", "__radd__"),
    *("sub", "__sub__", "mul", "mul_", "__mul__", "__rmul__", "__imul__", "matmul", "__matmul__"),
    *("baddbmm", "scaled_dot_product_attention", "multi_head_attention_forward", "__setitem__"),
}
FUSED = {"scaled_dot_product_attention", "multi_head_attention_forward"}
SMALLEST = 3  # positions of which a triangle can be told
LARGEST = 1 << 22  # elements of a tensor that is looked at
STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - of Python itself
KEPT = 1 << 26  # elements that are kept of a run


class Place(NamedTuple):
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else ""


class Triangle(NamedTuple):
    place: Place
    length: int


class MaskWatch(TorchFunctionMode):
    """Notes each operation whose mask is a triangle of positions."""

    def __init__(self) -> None:
        super().__init__()
        self.triangles: list[Triangle] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in MASKING:
            length = _triangle(name, args, kwargs)
            if length:
                self.triangles.append(Triangle(_place(), length))
        return func(*args, **kwargs)


def _place() -> Place:
    code, line, _ = user_location(sys._getframe(2), {})
    if code is None or code.co_filename.startswith((STANDARD, TORCH)):
        return Place("", 0)
    return Place(display_path(code.co_filename), line)


def _triangle(name: str, args: Any, kwargs: Any) -> int:
    """The number of positions of a triangular mask among the arguments; 0 where there is none."""
    tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
    floats = [t for t in tensors if t.is_floating_point() and t.dim() > 1]
    if not floats:
        return 0
    if name in FUSED:
        if kwargs.get("is_causal") is True or (len(args) > 5 and args[5] is True):
            query = tensors[0]
            return query.shape[-2] if name[0] == "s" else query.shape[0]
        tensors = tensors[3:] + [t for t in tensors[:3] if t.dtype is torch.bool]
        tensors = [t for t in tensors if t.dim() > 1]
    return next((t.shape[-1] for t in tensors if is_triangle(t)), 0)


def is_triangle(mask: Tensor) -> bool:
    """Whether one side of the diagonal has a single value, which the other has not beside it."""
    if mask.dim() < 2 or mask.numel() > LARGEST or mask.is_complex():
        return False
    rows, length = mask.shape[-2:]
    if rows != length or length < SMALLEST:
        return False
    one = mask.detach().reshape(-1, length, length)[0]
    away = 1 if length > SMALLEST else 0  # the diagonal itself may be off by one
    places = torch.ones(length, length, dtype=torch.bool)
    above, below = one[places.triu(1 + away)], one[places.tril(-1 - away)]
    near = (one.diagonal(1 + away), one.diagonal(-1 - away))
    return any(  # a window may hide what is far on the other side, too
        bool((side == side[0]).all()) and not bool((beside == side[0]).any())
        for side, beside in ((above, near[1]), (below, near[0]))
    )


class FirstMix(TorchFunctionMode):
    """Compares a run with the one before, operation by operation: the first output that moved at a
    sample or position where nothing was changed."""

    def __init__(self, before: FirstMix | None = None) -> None:
        super().__init__()
        self.before = before
        self.kept: list[Tensor | None] = []
        self.places: list[Place] = []
        self.size = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor) and not getattr(func, "__name__", "").startswith("__get_"):
            self.size += out.numel()
            keep = out.is_floating_point() and self.size < KEPT
            self.kept.append(out.detach().clone() if keep else None)
            self.places.append(_place())
        return out

    def first(self, moved: Callable[[Tensor, Tensor], bool]) -> Place | None:
        """The place of the first operation whose two outputs `moved` tells apart."""
        if self.before is None or len(self.kept) != len(self.before.kept):
            return None
        for mine, other, place in zip(self.kept, self.before.kept, self.places, strict=True):
            if mine is None or other is None or mine.shape != other.shape:
                continue
            if moved(other, mine) and place.line:
                return place
        return None

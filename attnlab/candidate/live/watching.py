"""What is seen while the copy runs: masks that are triangles, the line at which samples mix."""

import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnlab.tracer.class_source import class_source_of
from attnlab.tracer.raw_trace import display_path
from attnlab.tracer.recorder import SOFTMAX, TORCH, storage_of, user_location

# Operations by which a mask reaches scores or weights.
MASKING = {
    *("masked_fill", "masked_fill_", "where", "add", "add_", "__add__", "__iadd__", "__radd__"),
    *("sub", "__sub__", "mul", "mul_", "__mul__", "__rmul__", "__imul__", "matmul", "__matmul__"),
    *("baddbmm", "scaled_dot_product_attention", "multi_head_attention_forward", "__setitem__"),
}
ROWS = "rows of a parameter"  # that were taken, as a table of positions gives them
FUSED = {"scaled_dot_product_attention", "multi_head_attention_forward"}
MATRIX = 2  # axes of scores without a batch
SMALLEST = 3  # positions of which a triangle can be told
HIDDEN, BINARY = -1e4, 2  # what a mask takes away at least; the values of a mask
LARGEST = 1 << 22  # elements of a tensor that is looked at
STANDARD = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120 - of Python itself
KEPT = 1 << 26  # elements that are kept of a run


class Place(NamedTuple):
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else ""


def place_of_held(model: nn.Module, tensor: Tensor) -> Place | None:
    """The line of a class that assigns the buffer which holds a tensor; None for no such."""
    for module in model.modules():
        source = class_source_of(module)
        for name, held in module.named_buffers(recurse=False):
            if storage_of(held) == storage_of(tensor) and source.tree is not None:
                return Place(source.shown, source.assignment(name))
    return None


class Triangle(NamedTuple):
    place: Place
    length: int


class MaskWatch(TorchFunctionMode):
    """Notes masks that are triangles of positions, the numbers of keys, and what runs at all."""

    def __init__(self) -> None:
        super().__init__()
        self.triangles: list[Triangle] = []
        self.keys: set[int] = set()  # numbers of keys that a softmax ran over
        self.alone: set[int] = set()  # the same, of scores (S, S) that have no batch
        self.ops: set[str] = set()  # names of all operations

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        self.ops.add(name)
        if name == "__getitem__" and isinstance(args[0], nn.Parameter):
            self.ops.add(ROWS)
        if name in MASKING:
            length = _triangle(name, args, kwargs)
            if length:
                self.triangles.append(Triangle(place_of_call(), length))
        out = func(*args, **kwargs)
        if name in SOFTMAX and isinstance(out, Tensor) and out.dim() > MATRIX:
            self.keys.add(out.shape[-1])
        elif name in SOFTMAX and isinstance(out, Tensor) and out.shape == 2 * out.shape[-1:]:
            self.alone.add(out.shape[-1])
        elif name == "scaled_dot_product_attention":
            self.keys.add(args[1].shape[-2] if len(args) > 1 else kwargs["key"].shape[-2])
        elif name == "multi_head_attention_forward":
            self.keys.add(args[1].shape[0] if len(args) > 1 else kwargs["key"].shape[0])
        return out


def place_of_call(depth: int = 2) -> Place:
    """The line of the user's code at which an operation that is watched was called."""
    code, line, _ = user_location(sys._getframe(depth), {})
    if code is None or code.co_filename.startswith((STANDARD, TORCH)):
        return Place("", 0)
    return Place(display_path(code.co_filename), line)


def _triangle(name: str, args: Any, kwargs: Any) -> int:
    """The number of positions of a triangular mask among the arguments; 0 where there is none."""
    tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
    floats = [t for t in tensors if t.is_floating_point() and t.dim() > MATRIX]  # no mere table
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
        bool((side == side[0]).all())
        and not bool((beside == side[0]).any())
        and (side[0] <= HIDDEN or len(set(other.tolist())) <= BINARY)  # else a bias of distances
        for side, beside, other in ((above, near[1], below), (below, near[0], above))
    )


class Masks(TorchFunctionMode):
    """The masks that are made of (`length`, `length`) positions, with their places: those alone
    that no later mask is made of."""

    MAKING = re.compile(r"tril|triu|(lt|gt|le|ge|ne|eq|and|or|xor)_*$|logical_(and|or)|masked_fill")

    def __init__(self, length: int) -> None:
        super().__init__()
        self.shape = (length, length)
        self.made: list[tuple[Place, Tensor]] = []
        self.fused: list[Any] = []  # what attention in one call is given

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        square = isinstance(out, Tensor) and out.shape[-2:] == self.shape
        if getattr(func, "__name__", "") in FUSED:
            self.fused += [*args, *(kwargs or {}).values()]
        elif square and out.unique().numel() <= BINARY:
            parts = [m for m in self.made if any(m[1] is a for a in (*args, out))]
            self.made = [m for m in self.made if all(m is not p for p in parts)]
            if self.MAKING.search(getattr(func, "__name__", "")):
                self.made.append((place_of_call(), out))
            else:  # the same, inverted or with more axes
                self.made += [(place, out) for place, _ in parts[:1]]
        return out

    @property
    def wrong(self) -> Place | None:
        """Where a mask is made that is no triangle: what lies ahead is not hidden as a whole."""
        return next((place for place, mask in self.made if not self._hides(mask)), None)

    def _hides(self, mask: Any) -> bool:
        if mask.unique().numel() < BINARY:  # a window longer than the input: is it used alone?
            return not any(mask is given for given in self.fused)
        one = mask.reshape(-1, *self.shape)[0].to(torch.float32)
        ahead = one[torch.ones(self.shape, dtype=torch.bool).triu(1)]
        return bool((ahead == ahead[0]).all() and (one.diagonal() != ahead[0]).all())


class Values(TorchFunctionMode):
    """Keeps what each operation of a run made, to be compared with another run."""

    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []
        self.size = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if isinstance(out, Tensor) and not name.startswith("__get_"):
            self.size += out.numel()
            keep = out.is_floating_point() and self.size < KEPT
            kept = out.detach().clone() if keep else None
            self.steps.append(Step(place_of_call(), name, kept))
        return out


class Step(NamedTuple):
    place: Place
    op: str
    value: Tensor | None


class Pair(NamedTuple):
    """One operation in two runs."""

    place: Place
    op: str
    before: Tensor
    after: Tensor


def pairs(one: Values, other: Values) -> Iterator[Pair]:
    """The operations of two runs that took the same way, with both values."""
    if len(one.steps) == len(other.steps):
        for a, b in zip(one.steps, other.steps, strict=True):
            if a.value is not None and b.value is not None and a.value.shape == b.value.shape:
                yield Pair(a.place, a.op, a.value, b.value)


def first_apart(
    whole: Values, part: Values, start: int, moved: Callable[[Tensor, Tensor], bool]
) -> Place | None:
    """The line at which a call with some positions or samples, from `start` on, leaves the call
    with all: the first that only it ran, with a value of its own, else the first that differs.
    None where all that can be laid beside each other is equal."""
    same: dict[tuple[Place, str], list[Step]] = {}
    for step in reversed(whole.steps):
        same.setdefault((step.place, step.op), []).append(step)
    own: Place | None = None
    for step in part.steps:
        others = same.get((step.place, step.op))
        if not others:
            known = step.value is None or any(
                _apart(other.value, step.value, 0, moved) is False for other in whole.steps
            )
            own = own or (None if known or not step.place.line else step.place)
            continue
        apart = _apart(others.pop().value, step.value, start, moved)
        if apart:
            return own or step.place
        own = own if apart is None else None
    return None


def _apart(
    whole: Tensor | None, part: Tensor | None, start: int, moved: Callable[[Tensor, Tensor], bool]
) -> bool | None:
    """Whether a value differs from its rows of another; None where it has no such rows."""
    if part is None or whole is None or part.dim() != whole.dim() or not part.numel():
        return None
    for axis, (size, most) in enumerate(zip(part.shape, whole.shape, strict=True)):
        if size < most and start + size <= most:
            whole = whole.narrow(axis, start, size)
    return moved(whole, part) if whole.shape == part.shape else None


class Rectangles(TorchFunctionMode):
    """Notes whether triangles are made for fewer queries than keys."""

    MAKING = ("tril", "triu", "tril_", "triu_")

    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in self.MAKING and isinstance(out, Tensor):
            self.found |= out.shape[-2] < out.shape[-1]
        return out

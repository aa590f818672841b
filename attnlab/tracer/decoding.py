"""Calls one after the other: each feeds the next with its cache, and steps against a full pass.

A decode step sees one new position and a cache of those before it; its rows must equal the last
ones of a pass over all positions. Rows of both are paired by source line and order.
"""

import inspect
import linecache
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlab.records.trace import Finding
from attnlab.target.conventions import CACHES
from attnlab.tracer.cast import Given

OUTPUTS = ("out", "output", "y", "x", "hidden", "logits", "last_hidden_state", "hidden_states")
TOLERANCE = 1e-4  # of the largest value; float32 rounds by 1e-6
Axes = Mapping[str, Sequence[str]]


def cut_inputs(given: Given, axes: Axes, symbol: str, start: int, end: int) -> Given:
    """The inputs at positions from `start` to `end`; of a mask also all keys before `end`."""
    return [(n, t if t is None else _cut(t, axes.get(n, ()), symbol, start, end)) for n, t in given]


def _cut(tensor: Tensor, axes: Sequence[str], symbol: str, start: int, end: int) -> Tensor:
    places = [place for place, axis in enumerate(axes) if axis == symbol]
    for place in places[1:]:  # keys of a mask
        tensor = tensor.narrow(place, 0, end)
    return tensor.narrow(places[0], start, end - start) if places else tensor


def cache_in(out: Any, name: str = "") -> Any:
    """What a call returned to be given to the next one as its argument `name`; None where nothing.

    That is what stands beside the output in a tuple; in a dict or an object what has the name of a
    cache, else all of it, where nothing has that of an output.
    """
    if isinstance(out, Tensor):
        return None
    if isinstance(out, (tuple, list)):
        if out and isinstance(out[0], (tuple, list, dict)):  # a cache for each layer
            return out
        return out[1] if len(out) > 1 else None
    held = out if isinstance(out, Mapping) else getattr(out, "__dict__", {})
    caches = [held[key] for key in (name, *CACHES) if key in held]
    whole = out if held and not held.keys() & {*OUTPUTS} else None
    return caches[0] if caches else whole


def cache_length(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], place: int | None
) -> list[int] | None:
    """How many positions a cache held before a call and holds after it, by the shapes of its
    tensors: along the axis at `place`, else the only one that changes; None where none tells."""
    for old, new in zip(before, after, strict=False):
        changed = [a for a, (o, n) in enumerate(zip(old, new, strict=False)) if o != n]
        if place is not None and place < min(len(old), len(new)):
            return [old[place], new[place]]
        if len(changed) == 1 and len(old) == len(new):
            return [old[changed[0]], new[changed[0]]]
    return None


def cache_argument(function: Callable[..., Any]) -> str | None:
    """The argument that takes the cache of the call before."""
    try:
        names = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    return next((name for name in CACHES if name in names), None)


def output_of(out: Any) -> Tensor | None:
    """The first tensor of what a call returned, or what has the name of an output."""
    if isinstance(out, (tuple, list)) and out:
        out = out[0]
    held = out if isinstance(out, Mapping) else getattr(out, "__dict__", {})
    first = next((held[key] for key in OUTPUTS if key in held), out)
    return first if isinstance(first, Tensor) else None


# ---------------------------------------------------------------- values by line


class LineValue(NamedTuple):
    file: str
    line: int
    op: str
    value: Tensor


class ValuesByLine(TorchFunctionMode):
    """Keeps every tensor that a line of the file makes, in order."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file
        self.values: list[LineValue] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if isinstance(out, Tensor) and not name.startswith("__get"):
            frame = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename != self.file:
                frame = frame.f_back  # type: ignore[assignment]
            if frame is not None:
                self.values.append(LineValue(self.file, frame.f_lineno, name, out.detach().clone()))
        return out


def first_difference(
    full: Sequence[LineValue], step: Sequence[LineValue], start: int, end: int
) -> Finding | None:
    """The first value of a decode step that is not that of the full pass at the same positions;
    None where all that can be paired agree."""
    pairs = defaultdict(list)
    for value in full:
        pairs[value.line, value.op].append(value.value)
    count: dict[tuple[int, str], int] = defaultdict(int)
    for value in step:
        key = (value.line, value.op)
        number, count[key] = count[key], count[key] + 1
        if number >= len(pairs[key]) or value.op == "arange":  # to which an offset may be added
            continue
        wanted = _at_positions(pairs[key][number], value.value, start, end)
        if wanted is not None and not _equal(value.value, wanted):
            return _finding(value, wanted, start)
    return None


def _at_positions(full: Tensor, step: Tensor, start: int, end: int) -> Tensor | None:
    """The part of a full pass that a step has to equal; None where that is not clear."""
    if full.dim() != step.dim():
        return None
    odd = [a for a, (f, s) in enumerate(zip(full.shape, step.shape, strict=True)) if f != s]
    for axis in odd:
        if step.shape[axis] == end - start and full.shape[axis] >= end:
            full = full.narrow(axis, start, end - start)
        elif step.shape[axis] == end:
            full = full.narrow(axis, 0, end)
        else:
            return None
    return full


def _equal(mine: Tensor, wanted: Tensor) -> bool:
    if mine.dtype != wanted.dtype or not mine.is_floating_point():
        return torch.equal(mine, wanted) if mine.dtype == wanted.dtype else True
    finite = wanted.isfinite()
    largest = wanted[finite].abs().max().item() if finite.any() else 0.0
    gap = (mine - wanted)[finite & mine.isfinite()].abs()
    same = bool((finite == mine.isfinite()).all())
    return same and (not gap.numel() or gap.max().item() <= TOLERANCE * max(largest, 1.0))


def _finding(value: LineValue, wanted: Tensor, position: int) -> Finding:
    source = linecache.getline(value.file, value.line).strip()
    mine, right = _some(value.value), _some(wanted)
    return Finding(
        rule="decode-differs",
        file=value.file,
        line=value.line,
        op=value.op,
        severity="error",
        message=f"the step at position {position} first differs here from a pass over all "
        f"positions: `{source}` gives {mine}, the full pass {right}",
    )


def _some(tensor: Tensor) -> str:
    """The first numbers of a tensor."""
    numbers = tensor.flatten()[:3].tolist()
    shown = ", ".join(f"{n:.4g}" if isinstance(n, float) else str(n) for n in numbers)
    return f"[{shown}{', ...' if tensor.numel() > len(numbers) else ''}]"


def largest_gap(mine: Tensor, wanted: Tensor) -> float:
    """How far the outputs of a step are from those of the full pass."""
    return (mine - wanted).abs().max().item() if mine.shape == wanted.shape else float("inf")

"""The smallest change with which an operation that raised would have run.

Nothing is guessed: every candidate is run on zeros with the operands' shapes, strides and dtypes,
and suggested only if it runs and its result has a sensible shape.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import mul
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab.tracer.nested_tensors import map_tensors
from attnlab.tracer.raw_trace import Fit

MOST = 2  # suggestions
TRIES = 200
LARGE = 1 << 20  # elements: beyond, a tensor without data stands for it, which takes an import
# Operations whose result has the shape of their largest operand: nothing may grow.
ELEMENTWISE = {
    *("add", "sub", "mul", "div", "truediv", "true_divide", "radd", "rsub", "rmul", "iadd", "isub"),
    *("imul", "itruediv", "masked_fill", "masked_fill_", "where", "maximum", "minimum", "add_"),
    *("mul_", "sub_", "div_", "pow", "eq", "logical_and", "logical_or", "and", "or"),
}
PRODUCTS = {"matmul", "rmatmul", "bmm", "mm", "baddbmm"}
JOINS = {"cat", "concat", "concatenate"}
Names = list[str | list[str]]


class ReplayedCall(NamedTuple):
    """A call that can be made again, with tensors of zeros."""

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Change(NamedTuple):
    """One candidate: its text, the call that it makes, and the tensor that it changes."""

    text: str
    call: ReplayedCall
    before: Tensor | None = None
    after: Tensor | None = None


def zeros_as_laid_out(t: Tensor) -> Tensor:
    """Zeros of the shape, stride and dtype of a tensor; of a large one on the meta device."""
    reach = 1 + sum((n - 1) * step for n, step in zip(t.shape, t.stride(), strict=True))
    if not t.numel():
        return torch.empty(t.shape, dtype=t.dtype, device="cpu")
    device = "cpu" if reach <= LARGE else "meta"
    return torch.zeros(reach, dtype=t.dtype, device=device).as_strided(t.shape, t.stride())


def suggest_fixes(again: ReplayedCall, op: str, names: Names) -> tuple[Fit, ...]:
    """Changes with which the call runs, the smallest first; empty if no shape is at fault."""
    if op.startswith("conv"):  # channels that do not fit are a matter of the layer or the input
        return ()
    if _runs(again) is not None:
        return tuple(Fit(text=text) for text in _same_dtype(again, names))
    for changes in (_other_calls, _operand_changes):
        found = dict.fromkeys(_fixes_that_run(again, op, changes(again, op, names)))
        if found:
            return tuple(found)[:MOST]
    return ()


def _fixes_that_run(again: ReplayedCall, op: str, changes: Iterator[Change]) -> Iterator[Fit]:
    """The first few changes that run."""
    rank = max((t.dim() for _, t in _tensor_places(again.args)), default=0)
    tried = ((change, _runs(change.call)) for change in itertools.islice(changes, TRIES))
    good = (_fit(again, c, op, out) for c, out in tried if _sensible(c, op, out, rank))
    return itertools.islice(good, MOST + 1)


def _fit(again: ReplayedCall, change: Change, op: str, out: Any) -> Fit:
    """The change, with the new order of the axes where it only looks at a tensor in another way."""
    old, new = change.before, change.after
    tensors = [id(t) for _, t in _tensor_places(again.args)]
    if old is None or new is None or old.numel() != new.numel() or old.dtype != new.dtype:
        return Fit(text=change.text)
    todo = list(enumerate(zip(old.shape, old.stride(), strict=True)))
    axes = []
    for n, step in zip(new.shape, new.stride(), strict=True):
        found = next((i for i, pair in todo if n > 1 and pair == (n, step)), -1)
        if found < 0 and n > 1:  # merged with another one
            return Fit(text=change.text)
        axes.append(found)
        todo = [pair for pair in todo if pair[0] != found]
    into = tuple(out.shape) if op == "view" else ()
    return Fit(text=change.text, operand=tensors.index(id(old)), axes=tuple(axes), into=into)


def _same_dtype(again: ReplayedCall, names: Names) -> Iterator[str]:
    """On zeros or meta tensors some operations accept mixed dtypes that raise with data."""
    real = [(way, t) for way, t in _tensor_places(again.args) if t.is_floating_point()]
    if len({t.dtype for _, t in real}) > 1:
        said = _name(names, real[0][0]) or "the first operand"
        yield f"{said}.to({next(t.dtype for _, t in real if t.dtype != real[0][1].dtype)})"


def _runs(again: ReplayedCall) -> Any:
    try:
        out = again.func(*again.args, **again.kwargs)
    except Exception:  # whatever it is, this call does not run
        return None
    return True if out is None else out


def _sensible(change: Change, op: str, out: Any, rank: int) -> bool:
    """It runs, nothing has more axes than before, and no sum is larger than its operands."""
    if out is None:
        return False
    tensors = [t for _, t in _tensor_places(change.call.args) if t.dim()]
    if not isinstance(out, Tensor):
        return True
    if op == "view" and change.after is not None:
        return _keeps_axes_whole(change.after.shape, out.shape)
    if op not in ELEMENTWISE or not tensors:
        return out.dim() <= rank + (op == "stack")
    whole = max((t.shape for t in tensors), key=lambda s: (s.numel(), len(s)))
    return out.shape == whole and _lines_up(change, out.dim())


def _lines_up(change: Change, rank: int) -> bool:
    """A tensor that got axes got all of them: else its first lines up with an inner one."""
    old, new = change.before, change.after
    return old is None or new is None or old.dim() < 2 or new.dim() in (old.dim(), rank)


# ---------------------------------------------------------------- where the tensors are


def _tensor_places(args: tuple[Any, ...]) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Each tensor with its way: an argument, or an argument and a place in its list."""
    for i, value in enumerate(args):
        if isinstance(value, Tensor):
            yield (i,), value
        elif type(value) in (list, tuple):
            yield from (((i, j), v) for j, v in enumerate(value) if isinstance(v, Tensor))


def _with_tensor(again: ReplayedCall, old: Tensor, new: Tensor) -> ReplayedCall:
    return again._replace(args=map_tensors(lambda t: new if t is old else t, again.args))


def _name(names: Names, way: tuple[int, ...]) -> str:
    """What the operand is called; "" where the source does not tell."""
    name = names[way[0]] if way[0] < len(names) else ""
    if isinstance(name, list):
        return name[way[1]] if len(way) > 1 and way[1] < len(name) else ""
    return name if len(way) == 1 else ""


# ---------------------------------------------------------------- candidates


def _operand_changes(again: ReplayedCall, op: str, names: Names) -> Iterator[Change]:
    """Views and casts of one operand: of a sum first the smaller one, of a product the second."""
    places = _ranked(again, op)
    kinds = (_other_types, _one_view, _two_views, *([_slices] if op in ELEMENTWISE else []))
    by_operand = [(p, k) for p in places for k in kinds]
    by_kind = [(p, k) for k in kinds for p in places]
    for (way, tensor), kind in by_operand if op in ELEMENTWISE else by_kind:
        others = [(_name(names, w), t) for w, t in places if w != way]
        said = _name(names, way) or "the operand"
        for text, edit in kind(tensor, others):
            if op == "view" and "flatten" in text:  # a copy, which may scramble heads
                continue
            if "repeat" in text and op in PRODUCTS and way == (0,):  # queries share keys
                continue
            try:
                new = edit(tensor)
            except (RuntimeError, IndexError):
                continue
            yield Change(said + text, _with_tensor(again, tensor, new), tensor, new)


def _ranked(again: ReplayedCall, op: str) -> list[tuple[tuple[int, ...], Tensor]]:
    """Which operand is changed first: the second of a product, the smaller one of a sum."""
    places = list(_tensor_places(again.args))
    if op == "linear":
        return places[:1]
    if op in PRODUCTS:
        return places[::-1]
    if op in ELEMENTWISE:
        return sorted(places, key=lambda p: (p[1].numel(), [-i for i in p[0]]))
    return places


def _other_calls(again: ReplayedCall, op: str, names: Names) -> Iterator[Change]:
    """Other calls with the same tensors."""
    args, kwargs = again.args, again.kwargs
    if op == "view":
        yield from _reshapes(again, _name(names, (0,)) or "x")
    if op == "linear" and args[1].dim() == 2 and args[0].shape[-1] == args[1].shape[0]:
        out, into = args[1].shape
        text = f"nn.Linear({out}, {into}) in place of nn.Linear({into}, {out})"
        yield Change(text, ReplayedCall(again.func, (args[0], args[1].t()), {}))
    if op in JOINS:
        for dim in range(-1, max(t.dim() for t in args[0]) - 1):
            other = again._replace(args=args[:1], kwargs={**kwargs, "dim": dim})
            yield Change(f"dim={dim}", other)
    if op == "scaled_dot_product_attention":
        yield Change("enable_gqa=True", again._replace(kwargs={**kwargs, "enable_gqa": True}))


def _reshapes(again: ReplayedCall, name: str) -> Iterator[Change]:
    """`reshape` for `view`, before or after heads and positions change places.

    It runs with any sizes, so it is suggested only where one of the two keeps axes whole.
    """
    x, *shape = again.args
    orders = {"": x, ".transpose(1, 2)": x.transpose(1, 2)} if x.dim() == 4 else {"": x}
    right = []
    for text, tensor in orders.items():
        call = again._replace(func=Tensor.reshape, args=(tensor, *shape))
        out = _runs(call)
        if out is not None and _keeps_axes_whole(tensor.shape, out.shape):
            said = f"{name}{text}.reshape(...) in place of view"
            right.append(Change(said, call, x, tensor))
    if len(right) == 1:
        yield right[0]


def _keeps_axes_whole(old: Sequence[int], new: Sequence[int]) -> bool:
    """True if each new axis is a product of whole neighbouring axes, or a piece of one."""
    ends = {1, *itertools.accumulate(old, mul)}
    start = 1
    for n in new:
        end = start * n
        if any(start < e < end for e in ends) and not {start, end} <= ends:
            return False
        start = end
    return True


Edits = Iterator[tuple[str, Callable[[Tensor], Tensor]]]
Others = list[tuple[str, Tensor]]


def _other_types(t: Tensor, others: Others) -> Edits:
    for name, other in others:
        if other.dtype != t.dtype and other.is_floating_point() and t.is_floating_point():
            yield f".to({name}.dtype)" if name else f".to({other.dtype})", _to(other.dtype)
    for word, dtype in (("float", torch.float32), ("long", torch.int64), ("bool", torch.bool)):
        if t.dtype != dtype:
            yield f".{word}()", _to(dtype)


def _to(dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    return lambda t: t.to(dtype)


def _one_view(t: Tensor, others: Others) -> Edits:
    yield ".transpose(-2, -1)", lambda t: t.transpose(-2, -1)
    if t.dim() > 3:
        yield ".transpose(1, 2)", lambda t: t.transpose(1, 2)
    for k in [k for k, n in enumerate(t.shape) if n == 1]:
        yield f".squeeze({k})", lambda t, k=k: t.squeeze(k)  # type: ignore[misc]
    yield "[:, None]", lambda t: t[:, None]
    if t.dim() > 1:
        yield "[..., None]", lambda t: t[..., None]
    if t.dim() > 2:
        yield "[:, :, None]", lambda t: t[:, :, None]
        yield ".flatten(-2)", lambda t: t.flatten(-2)
    for _, other in others:
        if t.dim() == other.dim() == 4 and other.shape[1] % t.shape[1] == 0:
            n = other.shape[1] // t.shape[1]
            yield f".repeat_interleave({n}, dim=1)", lambda t, n=n: t.repeat_interleave(n, 1)  # type: ignore[misc]


def _two_views(t: Tensor, others: Others) -> Edits:  # noqa: ARG001 - one signature for all
    yield "[:, None, None]", lambda t: t[:, None, None]
    if t.dim() == 4:
        yield ".transpose(1, 2).flatten(-2)", lambda t: t.transpose(1, 2).flatten(-2)


def _slices(t: Tensor, others: Others) -> Edits:
    """A table, without a batch of its own, that is longer than what it is added to."""
    for _, other in others:
        shift = other.dim() - t.dim()
        if shift < 0 or (shift == 0 and (not t.dim() or t.shape[0] > 1)):
            continue
        for axis, n in enumerate(t.shape):
            to = other.shape[axis + shift]
            if 1 < to < n:
                text = "[" + ":, " * axis + f":{to}]"
                yield text, lambda t, a=axis, m=to: t.narrow(a, 0, m)  # type: ignore[misc]

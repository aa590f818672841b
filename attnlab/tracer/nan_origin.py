"""Measure suspicious rows in a second run.

The recorder keeps min, max and mean of a tensor. Where they show a NaN, an overflow or a mask
after the softmax, the call is repeated, and these rows are measured as they run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from attnlab.tracer.findings.values import is_overflow, late_masked
from attnlab.tracer.raw_trace import MaskedRows, Measured, RawTrace
from attnlab.tracer.recorder import SOFTMAX, Recorder

MOST = 4  # late masks that are measured
LOST = 1e-2  # of a row's sum: less may be rounding in half precision
RANDOM = {"dropout", "dropout_", "bernoulli", "bernoulli_", "multinomial", "alpha_dropout"}


class RowMeasurement(NamedTuple):
    """What the operands of one row held before it ran, and its result."""

    tainted: tuple[int, ...]  # those that had a NaN
    measured: Measured
    empty: int = 0  # of a softmax: rows that are -inf everywhere
    first: tuple[int, ...] = ()


def first_nan(raw: RawTrace) -> int | None:
    return next((op.index for op in raw.ops if op.nan), None)


def rows_to_measure(raw: RawTrace) -> tuple[int, ...]:
    """The rows to measure in a second run: first NaN, first overflow, late masks."""
    ops = raw.ops
    late = [i for i in late_masked(ops) if _lowers_mean(raw, i)][:MOST]
    burst = next((op.index for op in ops if is_overflow(ops, op)), None)
    found = {i for i in (first_nan(raw), burst, *late) if i is not None}
    return tuple(sorted(found))


def _lowers_mean(raw: RawTrace, row: int) -> bool:
    op = raw.ops[row]
    before = [raw.ops[p].mean for p in op.parents if p >= 0 and raw.ops[p].op in SOFTMAX]
    return op.mean is not None and any(m is not None and op.mean < m * (1 - 1e-4) for m in before)


class MeasuringRecorder(Recorder):
    """A recorder that also measures the given rows."""

    def __init__(self, root: nn.Module | None, rows: tuple[int, ...]) -> None:
        super().__init__(root)
        self.rows = frozenset(rows)
        self.measurements: dict[int, RowMeasurement] = {}
        self.given: dict[int, str] = {}  # the inputs' names, by id
        named = (*root.named_parameters(), *root.named_buffers()) if root is not None else ()
        self._weights = {id(t): n for n, t in named}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        row = self._count
        asked = row in self.rows and self.active and row not in self.measurements
        if asked:
            before = _copied(args), _copied(tuple((kwargs or {}).items()))
        out = super().__torch_function__(func, types, args, kwargs)
        # A function that is opened has the row of the first operation in it, which came first.
        if asked and self._count > row and row in self.rows and row not in self.measurements:
            try:
                self.measurements[row] = self._measure(row, func, before, out)
            except Exception:  # values cannot be read inside a vmap, or of a sparse tensor
                self.rows -= {row}
        return out

    def _measure(self, row: int, func: Any, before: tuple[Any, Any], out: Any) -> RowMeasurement:
        (args, names), (pairs, more) = before
        tensors, ids = [*_tensors(args), *_tensors(pairs)], [*names, *more]
        tainted = tuple(i for i, t in enumerate(tensors) if t.isnan().any().item())
        called = self._weights | self.given
        sources = tuple(
            called[key]
            for t, key in zip(tensors, ids, strict=True)
            if key in called and t.is_floating_point() and not t.isfinite().all()
        )
        name = self.log[-1][0]
        measured = Measured(
            row=row,
            sources=sources,
            reach=None if name in RANDOM else _float64_magnitude(func, args, dict(pairs)),
            ranges=tuple(_largest(t) for t in tensors if t.is_floating_point()),
            sums=_lost_weight(tensors, out) if isinstance(out, Tensor) else None,
        )
        if name not in SOFTMAX:
            return RowMeasurement(tainted, measured)
        dim = dict(pairs).get("dim", next((a for a in args[1:] if isinstance(a, int)), -1))
        if type(dim) is not int:
            return RowMeasurement(tainted, measured)
        rows = (tensors[0] == -torch.inf).all(dim).nonzero()
        first = tuple(rows[0].tolist()) if len(rows) else ()
        return RowMeasurement(tainted, measured, len(rows), first)


def _copied(values: Any) -> tuple[Any, list[int]]:
    """The arguments with copies of their tensors, and the ids of these: in-place writes follow."""
    ids: list[int] = []

    def copy(value: Any) -> Any:
        if isinstance(value, Tensor):
            ids.append(id(value))
            return value.detach().clone()
        if type(value) in (list, tuple):
            return type(value)(copy(v) for v in value)
        return value

    return copy(values), ids


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif type(value) in (list, tuple):
        for part in value:
            yield from _tensors(part)


def _wide(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value
    if type(value) in (list, tuple):
        return type(value)(_wide(v) for v in value)
    return value


def _float64_magnitude(func: Any, args: Any, kwargs: dict[str, Any]) -> float | None:
    """The largest finite magnitude of the operation's result in float64."""
    try:
        made = func(*_wide(args), **{n: _wide(v) for n, v in kwargs.items()})
        return _largest(made) if made.dtype is torch.float64 else None
    except Exception:  # an operation that insists on its dtype
        return None


def _largest(t: Tensor) -> float:
    sizes = t.detach().double().abs()
    sizes = sizes[sizes.isfinite()]
    return float(sizes.max()) if sizes.numel() else 0.0


def _lost_weight(tensors: list[Tensor], out: Tensor) -> tuple[float, int] | None:
    """Of weights with a mask: the least sum of a row that lost some, and how many rows did."""
    for weights in tensors:
        if weights.shape != out.shape or not weights.is_floating_point():
            continue
        if not ((out == weights) | (out == 0)).all():
            continue
        for axis in range(-1, -out.dim() - 1, -1):
            if ((weights.double().sum(axis) - 1).abs() < LOST).all():
                sums = out.double().sum(axis)
                lost = sums[(sums > 0) & (sums < 1 - LOST)]
                return (float(lost.min()), lost.numel()) if lost.numel() else None
    return None


def measured_fields(watcher: MeasuringRecorder, origin: int | None) -> dict[str, Any]:
    """The measurements as fields of a `RawTrace`; `origin` is the row of the first NaN."""
    measured = tuple(watcher.measurements[row].measured for row in sorted(watcher.measurements))
    nan = watcher.measurements.get(origin) if origin is not None else None
    if nan is None:
        return {"measured": measured}
    row = nan.measured.row
    masked = MaskedRows(row=row, count=nan.empty, first=nan.first) if nan.empty else None
    return {"measured": measured, "masked": masked, "tainted": nan.tainted}

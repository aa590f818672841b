"""Measure suspicious rows in a second run.

The recorder keeps min, max and mean of a tensor. Where they show a NaN, an overflow or a mask
after the softmax, the call is repeated, and these rows are measured as they run.
"""

from typing import Any

import torch
from torch import Tensor, nn

from attnlab.tracer.findings.values import is_overflow, late_masked
from attnlab.tracer.nested_tensors import map_tensors, tensors_in
from attnlab.tracer.raw_trace import Measured, RawTrace
from attnlab.tracer.recorder import SOFTMAX, Recorder
from attnlab.tracer.rows import weight_names

MOST = 4  # late masks that are measured
LOST = 1e-2  # of a row's sum: less may be rounding in half precision
RANDOM = {"dropout", "dropout_", "bernoulli", "bernoulli_", "multinomial", "alpha_dropout"}


def first_nan(raw: RawTrace) -> int | None:
    return next((op.index for op in raw.ops if op.nan), None)


def rows_to_measure(raw: RawTrace) -> tuple[int, ...]:
    """The rows to measure in a second run: first NaN, first overflow, late masks."""
    ops = raw.ops
    late = [i for i in late_masked(ops) if _lowers_mean(raw, i)][:MOST]
    burst = next((op.index for op in ops if is_overflow(ops, op)), None)
    return tuple(sorted({i for i in (first_nan(raw), burst, *late) if i is not None}))


def _lowers_mean(raw: RawTrace, row: int) -> bool:
    op = raw.ops[row]
    before = [raw.ops[p].mean for p in op.parents if p >= 0 and raw.ops[p].op in SOFTMAX]
    return op.mean is not None and any(m is not None and op.mean < m * (1 - 1e-4) for m in before)


class MeasuringRecorder(Recorder):
    """A recorder that also measures the given rows."""

    def __init__(self, root: nn.Module | None, rows: tuple[int, ...]) -> None:
        super().__init__(root)
        self.rows = frozenset(rows)
        self.measured: dict[int, Measured] = {}
        self.names = weight_names(root)  # of weights and inputs, by id

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        row = self._count
        asked = row in self.rows and self.active and row not in self.measured
        if asked:  # copies, as an operation may write into its operands
            names = [self.names.get(id(t)) for t in tensors_in((args, kwargs))]
            before = map_tensors(lambda t: t.detach().clone(), (args, kwargs or {}))
        out = super().__torch_function__(func, types, args, kwargs)
        # A function that is opened has the row of the first operation in it, which came first.
        if asked and self._count > row and row in self.rows and row not in self.measured:
            try:
                self.measured[row] = self._measure(row, func, before, names, out)
            except Exception:  # values cannot be read inside a vmap, or of a sparse tensor
                self.rows -= {row}
        return out

    def _measure(
        self,
        row: int,
        func: Any,
        given: tuple[Any, dict[str, Any]],
        names: list[str | None],
        out: Any,
    ) -> Measured:
        tensors = list(tensors_in(given))
        floats = [(t, n) for t, n in zip(tensors, names, strict=True) if t.is_floating_point()]
        op = self.log[-1][0]
        return Measured(
            row=row,
            tainted=tuple(i for i, t in enumerate(tensors) if t.isnan().any().item()),
            masked=_masked_rows(tensors[0], *given) if op in SOFTMAX else None,
            sources=tuple(dict.fromkeys(n for t, n in floats if n and not t.isfinite().all())),
            reach=None if op in RANDOM else _float64_magnitude(func, given),
            ranges=tuple(_largest(t) for t, _ in floats),
            sums=_lost_weight(tensors, out) if isinstance(out, Tensor) else None,
        )


def _masked_rows(
    scores: Tensor, args: Any, kwargs: dict[str, Any]
) -> tuple[int, tuple[int, ...]] | None:
    """How many rows of a softmax's operand are -inf everywhere, and the index of the first."""
    dim = kwargs.get("dim", next((a for a in args[1:] if isinstance(a, int)), -1))
    if type(dim) is not int:
        return None
    rows = (scores == -torch.inf).all(dim).nonzero()
    return (len(rows), tuple(rows[0].tolist())) if len(rows) else None


def _float64_magnitude(func: Any, given: tuple[Any, dict[str, Any]]) -> float | None:
    """The largest finite magnitude of the operation's result in float64."""
    try:
        args, kwargs = map_tensors(lambda t: t.double() if t.is_floating_point() else t, given)
        made = func(*args, **kwargs)
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

"""The log of a recorder, replayed into rows: who descends from whom, what is a view, the numbers.

Tensors are known by `id`. An id may be used again once its tensor is gone, so the log is read in
order: whatever a later operation calls by an id is the latest tensor that bore it.
"""

from __future__ import annotations

from types import CodeType
from typing import NamedTuple

import torch
from torch import Tensor

from attnlab.lab.recorder import Recorder, Sample

Numbers = tuple[float | None, float | None, float | None]  # min, max, mean
NONE: Numbers = (None, None, None)


class Out(NamedTuple):
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    view: bool
    kin: int  # of a view: the row it shares storage with, -1 where that is no row
    numbers: Numbers


class Row(NamedTuple):
    """One operation. `outs` has one entry per output tensor; a parent of -1 - i is input i."""

    op: str
    code: CodeType | None
    line: int
    module: str
    parents: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    outs: tuple[Out, ...]


class Replay(NamedTuple):
    rows: list[Row]
    fall_parents: tuple[int, ...]  # of the operation that raised


def replay(recorder: Recorder) -> Replay:
    """Rows in the order in which they happened."""
    born = {key: -1 - i for i, (key, _) in enumerate(recorder.inputs)}
    numbers = _numbers([out[-1] for seen in recorder.log for out in seen[-1]])
    rows: list[Row] = []
    count = 0
    for op, code, line, module, ins, made in recorder.log:
        kin = {storage: born.get(key, -1) for key, storage, _ in ins}
        parents = tuple(born[key] for key, _, _ in ins if key in born)
        first = ins[0][0] if ins else None
        outs = []
        for key, storage, shape, stride, dtype, _ in made:
            view = storage in kin and key != first
            relative = kin[storage] if view else -1
            outs.append(Out(tuple(shape), stride, dtype, view, relative, numbers[count]))
            born[key] = count
            count += 1
        shapes = tuple(tuple(shape) for _, _, shape in ins)
        rows.append(Row(op, code, line, module, parents, shapes, tuple(outs)))
    fall = recorder.fall
    last = tuple(born[key] for key, _, _ in fall.ins if key in born) if fall else ()
    return Replay(rows, last)


def _numbers(samples: list[Sample]) -> list[Numbers]:
    """Min, max and mean of every output: a few kernels and one transfer for all of them."""
    found = [NONE] * len(samples)
    copies = [(i, s) for i, s in enumerate(samples) if isinstance(s, Tensor)]
    reduced = [(i, s) for i, s in enumerate(samples) if isinstance(s, tuple)]
    if copies:
        data = torch.cat([s.reshape(-1).to("cpu", torch.float64) for _, s in copies])
        lengths = torch.tensor([s.numel() for _, s in copies])
        columns = [torch.segment_reduce(data, r, lengths=lengths) for r in ("min", "max", "mean")]
        for (i, _), low, high, mean in zip(copies, *(c.tolist() for c in columns), strict=True):
            found[i] = (low, high, mean)
    if reduced:
        flat = [part.to("cpu", torch.float64) for _, s in reduced for part in s[:3]]
        values = torch.stack(flat).tolist()
        for at, (i, s) in enumerate(reduced):
            low, high, total = values[3 * at : 3 * at + 3]
            found[i] = (low, high, total / s[3])
    return found

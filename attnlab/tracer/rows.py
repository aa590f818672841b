"""The log of a recorder, replayed into rows: who descends from whom, what is a view, the numbers.

Tensors are known by `id`. An id may be used again once its tensor is gone, so the log is read in
order: what a later operation calls by an id is the latest tensor that bore it, if storage and
shape are still the same. (Not every tensor comes out of an operation: a new `nn.Parameter` may
bear the id of a tensor that is gone.)
"""

from collections import deque
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from attnlab.tracer.recorder import ArgumentTemplate, LoggedInput, Recorder, Shape
from attnlab.tracer.value_samples import Reduced, Sample, settled

Numbers = tuple[float | None, float | None, float | None]  # min, max, mean
NONE: Numbers = (None, None, None)
Source = int | str | None
INTEGERS = {int}
FRESH = 4  # operations, such as a cast, between the making of a batch and its use


class OutputRow(NamedTuple):
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype
    view: bool
    kin: int | None  # of a view of the same elements: where it got them, and its numbers
    numbers: Numbers


class Row(NamedTuple):
    """One operation. `outs` has one entry per output tensor; a parent of -1 - i is input i.

    `sources` has one entry per operand: a parent, the name of a weight or buffer, or None for a
    tensor that came from somewhere else. `bones` are the arguments, `HOLE` for each operand.
    """

    op: str
    code: CodeType | None
    line: int
    module: str
    parents: tuple[int, ...]
    operands: tuple[tuple[int, ...], ...]
    outs: tuple[OutputRow, ...]
    sources: tuple[Source, ...]
    template: ArgumentTemplate


class Replay(NamedTuple):
    rows: list[Row]
    crash_parents: tuple[int, ...]  # of the operation that raised
    crash_operands: tuple[tuple[int, ...], ...]
    crash_sources: tuple[Source, ...]
    outputs: tuple[int, ...]  # of the recorder, as rows
    read: tuple[int, ...]  # rows whose values the program read
    fed: tuple[int, ...]  # of each input the row that made it, or -1 - i


def replay(recorder: Recorder) -> Replay:
    """Rows in the order in which they happened."""
    born = {
        key: (-1 - i, storage, shape) for i, (key, storage, shape) in enumerate(recorder.inputs)
    }
    weights = weight_names(recorder.root)
    numbers = _numbers([out[-1] for seen in recorder.log for out in seen[5]])
    rows: list[Row] = []
    count = 0
    given = dict(born)
    fed: tuple[int, ...] = ()
    read: list[int | None] = []
    reads = deque(recorder.reads)
    for at, (op, code, line, module, ins, made, template) in enumerate(recorder.log):
        if at == recorder.named_at:
            fed = tuple(born[key][0] for key, _, _ in recorder.inputs)
            born |= {key: old for key, old in given.items() if _is_fresh(rows, born[key][0])}
        while reads and reads[0][0] <= at:
            read.append(_row(born, reads.popleft()[1]))
        known = [_row(born, tensor) for tensor in ins]
        kin = {storage: row for (_, storage, _), row in zip(ins, known, strict=True)}
        outs = []
        for key, storage, shape, stride, dtype, view, same, _ in made:
            relative = kin[storage] if same else None
            sizes = plain_sizes(shape), plain_sizes(stride)
            outs.append(OutputRow(*sizes, dtype, view, relative, numbers[count]))
            born[key] = (count, storage, shape)
            count += 1
        shapes = tuple(plain_sizes(shape) for _, _, shape in ins)
        sources = _sources(ins, known, weights)
        rows.append(
            Row(op, code, line, module, _parents(known), shapes, tuple(outs), sources, template)
        )
    ins = recorder.failure.ins if recorder.failure else []
    known = [_row(born, tensor) for tensor in ins]
    shapes = tuple(plain_sizes(shape) for _, _, shape in ins)
    outputs = _parents([_row(born, tensor) for tensor in recorder.outputs])
    read += [_row(born, tensor) for _, tensor in reads]
    sources = _sources(ins, known, weights)
    return Replay(rows, _parents(known), shapes, sources, outputs, _parents(read), fed)


def _is_fresh(rows: list[Row], made_by: int) -> bool:
    """Whether a tensor was made of nothing: a batch that is drawn just before it is fed."""
    outs = [row for row in rows for _ in row.outs]
    for _ in range(FRESH):
        if made_by < 0:
            return True
        row = outs[made_by]
        if any(source is None or isinstance(source, str) for source in row.sources):
            return False
        if not row.parents:
            return True
        made_by = row.parents[0] if len(row.parents) == 1 else len(outs)
        if made_by >= len(outs):
            return False
    return False


def _sources(
    ins: list[LoggedInput], known: list[int | None], weights: dict[int, str]
) -> tuple[Source, ...]:
    pairs = zip(ins, known, strict=True)
    return tuple(weights.get(tensor[0]) if row is None else row for tensor, row in pairs)


def weight_names(root: Any) -> dict[int, str]:
    """The dotted names of the parameters and buffers, which live as long as their module."""
    named = (*root.named_parameters(), *root.named_buffers()) if root is not None else ()
    return {id(tensor): name.replace("_orig_mod.", "") for name, tensor in named}


def _row(born: dict[int, tuple[int, int, Shape]], tensor: LoggedInput) -> int | None:
    """The row that made a tensor, or -1 - i for input i."""
    key, storage, shape = tensor
    known = born.get(key)
    return known[0] if known is not None and known[1:] == (storage, shape) else None


def _parents(known: list[int | None]) -> tuple[int, ...]:
    return tuple(row for row in known if row is not None)


def plain_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes as numbers; -1 for one that is a symbol, as the ragged axis of a jagged tensor is."""
    found = tuple(sizes)
    if {*map(type, found)} <= INTEGERS:
        return found
    return tuple(n if type(n) is int else -1 for n in found)


def _numbers(kept: list[Sample]) -> list[Numbers]:
    """Min, max and mean of every output: a few kernels and one transfer for all of them."""
    samples = [settled(sample) for sample in kept]
    found = [NONE] * len(samples)
    _fill_from_copies(found, [(i, s) for i, s in enumerate(samples) if isinstance(s, Tensor)])
    for i, s in enumerate(samples):
        if isinstance(s, tuple):
            found[i] = _numbers_of_parts(s)
    return found


def _fill_from_copies(found: list[Numbers], samples: list[tuple[int, Tensor]]) -> None:
    """All small tensors at once."""
    copies = [(i, t) for i, t in samples if not t.is_meta]
    if not copies:
        return
    data = torch.cat([t.reshape(-1).to("cpu", torch.float64) for _, t in copies])
    lengths = torch.tensor([t.numel() for _, t in copies], device="cpu")
    columns = [torch.segment_reduce(data, r, lengths=lengths) for r in ("min", "max", "mean")]
    for (i, _), low, high, mean in zip(copies, *(c.tolist() for c in columns), strict=True):
        found[i] = (low, high, mean)


def _numbers_of_parts(parts: Reduced) -> Numbers:
    low, high, total = (
        p.item() if isinstance(p, Tensor) and not p.is_meta else p for p in parts[:3]
    )
    if isinstance(low, Tensor) or isinstance(high, Tensor) or isinstance(total, Tensor):
        return NONE
    return float(low), float(high), float(total) / parts[3]

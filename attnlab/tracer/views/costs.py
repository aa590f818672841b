"""The cost of each operation: median seconds of several runs, and bytes of new memory."""

import weakref
from dataclasses import replace
from statistics import median

import torch
from torch import Tensor

from attnlab.records.trace import Weight
from attnlab.sizes import format_bytes
from attnlab.tracer.call_setup import TracedCall, repeat_call
from attnlab.tracer.capture import record_run
from attnlab.tracer.nested_tensors import tensors_in
from attnlab.tracer.raw_trace import RawTrace
from attnlab.tracer.rerun import Call, RerunMode, matching_rows, note_divergence
from attnlab.tracer.views.kernels import add_flops

RUNS = 5
LONG = 5.0  # seconds: a model that took as long as this is run no more often


# ---------------------------------------------------------------- seconds


def add_times(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """Seconds of each row. The outputs of one operation share its time: the first one has it."""
    runs: list[TimeMode] = []
    while not runs or (len(runs) < RUNS and sum(run.total for run in runs) < LONG):
        runs.append(TimeMode(traced.options.device))
        repeat_call(traced, runs[-1])
    runs = runs[1:] or runs  # the first one warms up
    same = min(matching_rows(raw, run) for run in runs)
    ops = (
        replace(op, seconds=median(run.spent[op.index] for run in runs))
        if op.index < same and op.index in runs[0].spent
        else op
        for op in raw.ops
    )
    total = median(run.total for run in runs)
    threads = torch.get_num_threads()
    note = (
        f"times are medians of {len(runs)} runs with {threads} thread{'s'[: threads != 1]}; "
        f"the operations took {total * 1e3:.3g} ms in all"
    )
    raw = replace(raw, ops=tuple(ops), notes=(*raw.notes, note))
    return note_divergence(raw, same, "the times")


class TimeMode(RerunMode):
    """Takes the time of each operation."""

    def __init__(self, device: str = "cpu") -> None:
        super().__init__()
        if device.startswith("cuda"):
            self.wait = torch.cuda.synchronize
        self.spent: dict[int, float] = {}

    @property
    def total(self) -> float:
        return sum(self.spent.values())

    def on_outputs(self, row: int, call: Call, outs: tuple[Tensor, ...]) -> None:  # noqa: ARG002
        self.spent[row] = call.seconds


# ---------------------------------------------------------------- all that `attnlab cost` counts


def add_cost(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """FLOPs and bytes of each row, and the weights."""
    found: dict[int, Weight] = {}
    if root := traced.root:
        held = [(t, True) for t in root.named_parameters(remove_duplicate=False)]
        for (name, t), learned in (*held, *((t, False) for t in root.named_buffers())):
            known = found.get(id(t))
            found[id(t)] = (
                replace(known, also=(*known.also, name))
                if known
                else Weight(name=name, shape=tuple(t.shape), bytes=t.nbytes, learned=learned)
            )
    counted = add_flops(traced, raw)
    if len(counted.notes) > len(raw.notes):  # a first call fills tables that later ones find
        raw = record_run(traced)
        counted = add_flops(traced, raw)
    return replace(add_bytes(traced, counted), weights=tuple(found.values()))


# ---------------------------------------------------------------- bytes


def add_bytes(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """Bytes that each row's output brought along, and how many were alive at once."""
    mode = MemoryMode()
    repeat_call(traced, mode)
    same = matching_rows(raw, mode)
    ops = tuple(
        replace(op, bytes=mode.new.get(op.index)) if op.index < same else op for op in raw.ops
    )
    if mode.peak:
        at = ops[min(mode.top, len(ops) - 1)]
        note = (
            f"at most {format_bytes(mode.peak)} of outputs were alive at once, after {at.op} on "
            f"line {at.line} (without weights, inputs and the scratch memory of kernels)"
        )
        raw = replace(raw, notes=(*raw.notes, note))
    return note_divergence(replace(raw, ops=ops), same, "the bytes")


class MemoryMode(RerunMode):
    """Follows the storages that operations make, from their first row to their end."""

    def __init__(self) -> None:
        super().__init__()
        self.new: dict[int, int] = {}  # bytes by row; 0 for a view
        self.peak = self.top = self._alive = 0
        self._known: dict[int, int] = {}  # storages alive: their bytes

    def on_outputs(self, row: int, call: Call, outs: tuple[Tensor, ...]) -> None:
        given = {_key(t) for t in tensors_in((call.args, call.kwargs))}
        for i, t in enumerate(outs):
            key = _key(t)
            if key is None:  # inside a vmap, or of a sparse tensor
                continue
            fresh = key not in given and key not in self._known
            self.new[row + i] = self._add(key, t) if fresh else 0
        if self._alive > self.peak:
            self.peak, self.top = self._alive, row

    def _add(self, key: int, t: Tensor) -> int:
        storage = t.untyped_storage()
        count = storage.nbytes()
        self._known[key] = count
        self._alive += count
        weakref.finalize(storage, self._forget, key).atexit = False
        return count

    def _forget(self, key: int) -> None:
        self._alive -= self._known.pop(key, 0)


def _key(t: Tensor) -> int | None:
    try:
        key: int = t.untyped_storage()._cdata
    except Exception:
        return None
    return key

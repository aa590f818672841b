"""A mode for further runs of a traced call, with the same row numbers as the first run.

The recorder keeps no values and takes no times: each view that needs them makes a run of its own.
Row numbers match as long as the call does the same again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnlab.tracer.op_kinds import Kind, kind_of, outputs
from attnlab.tracer.raw_trace import RawTrace, only_file, place_of, plain_name
from attnlab.tracer.recorder import MAX_ROWS, reentered

Args = tuple[Any, ...]


class RerunMode(TorchFunctionMode):
    """Calls `on_outputs` for each row, and keeps its name and shape."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[tuple[str, tuple[int, ...]]] = []
        self.wait: Callable[[], None] | None = None  # synchronises a device

    def on_outputs(self, row: int, call: Call, outs: tuple[Tensor, ...]) -> None:
        """What a subclass does with the outputs of a call, the first of which is `row`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kind, kwargs = kind_of(func), kwargs or {}
        if not kind.name or len(self.rows) >= MAX_ROWS:
            return func(*args, **kwargs)
        if kind.twin is not None:
            with reentered(self):
                return kind.twin(*args, **kwargs)
        call = self.begin_call(kind, args, kwargs)
        start = perf_counter()
        out = func(*args, **kwargs)
        if self.wait is not None:
            self.wait()
        call.seconds = perf_counter() - start
        outs = outputs(kind, args, out)
        row = len(self.rows)
        self.rows += [(plain_name(kind.name), tuple(t.shape)) for t in outs]
        if outs:
            self.on_outputs(row, call, outs)
        return out

    def begin_call(self, kind: Kind, args: Args, kwargs: dict[str, Any]) -> Call:
        return Call(kind, args, kwargs)


class Call:
    """One operation while it runs."""

    def __init__(self, kind: Kind, args: Args, kwargs: dict[str, Any]) -> None:
        self.kind, self.args, self.kwargs = kind, args, kwargs
        self.seconds = 0.0


def matching_rows(raw: RawTrace, mode: RerunMode) -> int:
    """The number of leading rows that are the same in both runs."""
    both = enumerate(zip(raw.ops, mode.rows, strict=False))
    end = min(len(raw.ops), len(mode.rows))
    return next((i for i, (op, row) in both if (op.op, op.shape) != row), end)


def note_divergence(raw: RawTrace, count: int, what: str) -> RawTrace:
    """The trace with a note on where the further run diverged."""
    if count == len(raw.ops):
        return raw
    op = raw.ops[count]
    note = (
        f"{what} end at {op.op} {place_of(op, only_file(raw))}: the repeated call "
        "ran other operations from there on"
    )
    return replace(raw, notes=(*raw.notes, note))

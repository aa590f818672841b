"""The values of a tensor by its name in the source: a variable, line, module or parameter.

A further run is followed statement by statement, as a debugger does, so it does not matter how a
variable got its value: by an operation, by unpacking or as a return value.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from attnlab.records.trace import Heat
from attnlab.suggest import closest_names
from attnlab.tracer.call_setup import TracedCall, repeat_call
from attnlab.tracer.raw_trace import RawTrace, display_path
from attnlab.tracer.recorder import is_library_code
from attnlab.tracer.rerun import Call, RerunMode, matching_rows
from attnlab.tracer.views.heatmap import slice_text, to_heat, unwrap

MOST = 4  # values of one name that are drawn
TraceFunction = Callable[[FrameType, str, Any], Any]


class NamedValue(NamedTuple):
    name: str
    line: int
    value: Tensor  # a copy
    row: int | None


def add_values(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """The trace with the values of what `traced.options.values` names."""
    for asked in dict.fromkeys(traced.options.values):
        raw = _add_values_of(asked, traced, raw)
    return raw


def _add_values_of(asked: str, traced: TracedCall, raw: RawTrace) -> RawTrace:
    mode = ValueMode(traced, asked, _last(asked, traced, raw))
    repeat_call(traced, mode)
    found = mode.found or list(_named(asked, traced, mode))
    if not found:
        return replace(raw, notes=(*raw.notes, _missing(asked, mode)))
    same = matching_rows(raw, mode)
    heats = [_heat(f, raw, same) for f in found]
    if len(mode.taken) > len(found):
        note = f"{asked} had {len(mode.taken)} values; the first {MOST} are shown"
        raw = replace(raw, notes=(*raw.notes, note))
    return replace(raw, values=(*raw.values, *heats))


def _last(asked: str, traced: TracedCall, raw: RawTrace) -> int:
    """The row that ends the line that is asked for, where it first ran; -1 for none."""
    line = int(asked) if asked.isdigit() else 0
    on = [op.line == line and op.file == display_path(traced.file or op.file) for op in raw.ops]
    first = on.index(True) if True in on else len(on)
    end = next((i for i in range(first, len(on)) if not on[i]), len(on))
    return end - 1 if first < end else -1


def _heat(found: NamedValue, raw: RawTrace, same: int) -> Heat:
    value, row = found.value, found.row
    index = row if row is not None and 0 <= row < same else None
    axes = raw.ops[index].axes if index is not None else ()
    shape = ", ".join(map(str, value.shape))
    at = f" on line {found.line}" if found.line else ""
    return to_heat(value, f"{found.name}{slice_text(value)}{at}, of shape ({shape})", axes, index)


def _named(name: str, traced: TracedCall, mode: ValueMode) -> Iterator[NamedValue]:
    """An input, a weight or buffer, or the output of a submodule."""
    root = traced.root
    weights = (*root.named_parameters(), *root.named_buffers()) if root is not None else ()
    named = ((n, t) for n, t in (*traced.given, *weights) if n == name and t is not None)
    yield from (NamedValue(n, 0, t, None) for n, t in named)
    yield from mode.spare


def _missing(asked: str, mode: ValueMode) -> str:
    if asked.isdigit():
        return f"line {asked} made no tensor, or was not reached"
    names = sorted(mode.names)
    close = closest_names(asked, names) or names[:8]
    instead = f"; there are {', '.join(close)}" if close else ""
    return f"no variable, input, weight or submodule with a tensor is called {asked!r}{instead}"


class ValueMode(RerunMode):
    """Follows the statements of the user's functions, and copies the named values."""

    def __init__(self, traced: TracedCall, asked: str, last: int) -> None:
        super().__init__()
        self.line = int(asked) if asked.isdigit() else 0
        self.name, self.file = "" if self.line else asked, traced.file
        self.found: list[NamedValue] = []  # the first ones
        self.taken: list[tuple[Tensor, tuple[int, int]]] = []
        self.names: set[str] = set()  # of variables that held a tensor
        self.spare: list[NamedValue] = []  # of a line without a variable, or of a submodule
        self._last = last  # the row that ends the line
        self._row: dict[int, int] = {}  # the row that made a tensor, by its id
        self._root = traced.root
        self._hook: Any = None

    def __enter__(self) -> Self:
        modules = dict(self._root.named_modules()) if self._root is not None else {}
        if self.name and self.name in modules:
            self._hook = modules[self.name].register_forward_hook(self._leave_module)
        super().__enter__()  # type: ignore[no-untyped-call]
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)
        if self._hook is not None:
            self._hook.remove()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def on_outputs(self, row: int, call: Call, outs: tuple[Tensor, ...]) -> None:
        self._row.update((id(t), row + i) for i, t in enumerate(outs))
        if row <= self._last < row + len(outs):  # no mode is active here
            self.spare = [
                NamedValue(
                    call.kind.name,
                    self.line,
                    unwrap(outs[self._last - row]).detach().clone(),
                    self._last,
                )
            ]

    def _leave_module(self, module: Any, args: Any, out: Any) -> None:  # noqa: ARG002 - a hook's signature
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        if isinstance(first, Tensor) and not self.spare:
            with torch._C.DisableTorchFunction():
                copy = unwrap(first).detach().clone()
            self.spare = [NamedValue(self.name, 0, copy, self._row.get(id(first)))]

    def _called(self, frame: FrameType, event: str, arg: Any) -> TraceFunction | None:  # noqa: ARG002
        file = frame.f_code.co_filename
        elsewhere = self.line and self.file not in ("", file)
        return None if elsewhere or is_library_code(file) else Statements(self, frame)

    def take(self, name: str, line: int, value: Tensor) -> None:
        """One more value; the same tensor handed on to another function is none."""
        mark = _mark(value)
        if any(t is value and m == mark for t, m in self.taken):
            return
        self.taken.append((value, mark))
        if len(self.taken) <= MOST:
            with torch._C.DisableTorchFunction():  # the copy is no row
                copy = unwrap(value).detach().clone()
            self.found.append(NamedValue(name, line, copy, self._row.get(id(value))))


class Statements:
    """The statements of one call of a function, as they are done."""

    def __init__(self, mode: ValueMode, frame: FrameType) -> None:
        self.mode = mode
        self.line = frame.f_lineno  # of the statement that is being done
        self.held: dict[str, tuple[int, int]] = {}
        self._changed(frame)
        if mode.name and mode.name in self.held:
            mode.take(mode.name, self.line, frame.f_locals[mode.name])

    def __call__(self, frame: FrameType, event: str, arg: Any) -> TraceFunction:
        if event in ("line", "return"):
            whole_line = not self.mode.name and self.line == self.mode.line
            for name in self._changed(frame):
                if whole_line or name == self.mode.name:
                    self.mode.take(name, self.line, frame.f_locals[name])
            if event == "return" and self.line == self.mode.line and isinstance(arg, Tensor):
                self.mode.take("the return value", self.line, arg)
            self.line = frame.f_lineno
        return self

    def _changed(self, frame: FrameType) -> list[str]:
        """The variables that hold another tensor than before the statement, or a changed one."""
        now = {n: _mark(v) for n, v in frame.f_locals.items() if isinstance(v, Tensor)}
        changed = [n for n, mark in now.items() if self.held.get(n) != mark]
        self.held = now
        self.mode.names.update(now)
        return changed


def _mark(t: Tensor) -> tuple[int, int]:
    try:
        return id(t), t._version
    except Exception:  # an inference tensor does not count its writes
        return id(t), 0

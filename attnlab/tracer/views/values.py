"""The values of a tensor by what the user calls it: a variable, a line, a module, a weight.

A further run is followed statement by statement, as a debugger does: so it does not matter how a
variable came to its value, by an operation, by unpacking or as what a function returned.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch
from torch import Tensor

from attnlab.records.trace import Heat
from attnlab.suggest import near
from attnlab.tracer.call_setup import again
from attnlab.tracer.raw_trace import RawTrace, shown
from attnlab.tracer.recorder import is_foreign
from attnlab.tracer.rerun import Call, Spy, agree
from attnlab.tracer.views.heatmap import bare, heat, part

if TYPE_CHECKING:
    from attnlab.tracer.capture import Shot

MOST = 4  # values of one name that are drawn
Trace = Callable[[FrameType, str, Any], Any]


class Found(NamedTuple):
    name: str
    line: int
    value: Tensor  # a copy
    row: int | None


def told(shot: Shot, raw: RawTrace) -> RawTrace:
    """The trace with the values of what `shot.options.values` names."""
    spy = ValueSpy(shot, _last(shot, raw))
    again(shot, spy)
    found = spy.found or list(_named(shot, spy))
    if not found:
        return replace(raw, notes=(*raw.notes, _missing(shot, spy)))
    same = agree(raw, spy)
    heats = [_heat(f, raw, same) for f in found]
    if spy.count > len(found):
        note = f"{shot.options.values} had {spy.count} values; the first {MOST} are shown"
        raw = replace(raw, notes=(*raw.notes, note))
    return replace(raw, values=(*raw.values, *heats))


def _last(shot: Shot, raw: RawTrace) -> int:
    """The row that ends the line that is asked for, where it first ran; -1 for none."""
    asked = int(shot.options.values) if shot.options.values.isdigit() else 0
    on = [op.line == asked and op.file == shown(shot.file or op.file) for op in raw.ops]
    first = on.index(True) if True in on else len(on)
    end = next((i for i in range(first, len(on)) if not on[i]), len(on))
    return end - 1 if first < end else -1


def _heat(found: Found, raw: RawTrace, same: int) -> Heat:
    value, row = found.value, found.row
    index = row if row is not None and 0 <= row < same else None
    axes = raw.ops[index].axes if index is not None else ()
    shape = ", ".join(map(str, value.shape))
    at = f" on line {found.line}" if found.line else ""
    return heat(value, f"{found.name}{part(value)}{at}, of shape ({shape})", axes, index)


def _named(shot: Shot, spy: ValueSpy) -> Iterator[Found]:
    """An input, a weight or buffer, or the output of a submodule."""
    name = shot.options.values
    yield from (Found(n, 0, t, None) for n, t in shot.given if n == name and t is not None)
    if shot.root is not None:
        named = (*shot.root.named_parameters(), *shot.root.named_buffers())
        yield from (Found(n, 0, t, None) for n, t in named if n == name)
    yield from spy.spare


def _missing(shot: Shot, spy: ValueSpy) -> str:
    asked = shot.options.values
    if asked.isdigit():
        return f"no tensor was made on line {asked}: the run did not come by there"
    names = sorted(spy.names)
    close = near(asked, names) or names[:8]
    instead = f"; there are {', '.join(close)}" if close else ""
    return f"no variable, input, weight or submodule with a tensor is called {asked!r}{instead}"


class ValueSpy(Spy):
    """Follows the statements of the user's functions, and copies what was asked for."""

    def __init__(self, shot: Shot, last: int) -> None:
        super().__init__()
        asked = shot.options.values
        self.line = int(asked) if asked.isdigit() else 0
        self.name, self.file = "" if self.line else asked, shot.file
        self.found: list[Found] = []  # the first ones
        self._taken: list[tuple[Tensor, tuple[int, int]]] = []
        self.names: set[str] = set()  # of variables that held a tensor
        self.spare: list[Found] = []  # of a line without a variable, or of a submodule
        self._last = last  # the row that ends the line
        self._row: dict[int, int] = {}  # the row that made a tensor, by its id
        self._root = shot.root
        self._hook: Any = None
        self._before: Any = None

    def __enter__(self) -> Self:
        modules = dict(self._root.named_modules()) if self._root is not None else {}
        if self.name and self.name in modules:
            self._hook = modules[self.name].register_forward_hook(self._left)
        super().__enter__()  # type: ignore[no-untyped-call]
        self._before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)
        if self._hook is not None:
            self._hook.remove()
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def saw(self, row: int, call: Call, outs: tuple[Tensor, ...]) -> None:
        self._row.update((id(t), row + i) for i, t in enumerate(outs))
        if row <= self._last < row + len(outs):  # no mode is active here
            self.spare = [
                Found(
                    call.kind.name,
                    self.line,
                    bare(outs[self._last - row]).detach().clone(),
                    self._last,
                )
            ]

    def _left(self, module: Any, args: Any, out: Any) -> None:  # noqa: ARG002 - a hook's signature
        first = out[0] if isinstance(out, (tuple, list)) and out else out
        if isinstance(first, Tensor) and not self.spare:
            with torch._C.DisableTorchFunction():
                copy = bare(first).detach().clone()
            self.spare = [Found(self.name, 0, copy, self._row.get(id(first)))]

    def _called(self, frame: FrameType, event: str, arg: Any) -> Trace | None:  # noqa: ARG002
        code = frame.f_code
        if is_foreign(code.co_filename):
            return None
        if self.file and self.line and code.co_filename != self.file:
            return None
        return Statements(self, frame)

    def take(self, name: str, line: int, value: Tensor) -> None:
        """One more value; the same tensor handed on to another function is none."""
        mark = _mark(value)
        if any(t is value and m == mark for t, m in self._taken):
            return
        self._taken.append((value, mark))
        if len(self._taken) <= MOST:
            with torch._C.DisableTorchFunction():  # the copy is no row
                copy = bare(value).detach().clone()
            self.found.append(Found(name, line, copy, self._row.get(id(value))))

    @property
    def count(self) -> int:
        return len(self._taken)


class Statements:
    """The statements of one call of a function, as they are done."""

    def __init__(self, spy: ValueSpy, frame: FrameType) -> None:
        self.spy = spy
        self.line = frame.f_lineno  # of the statement that is being done
        self.held: dict[str, tuple[int, int]] = {}
        self._changed(frame)
        if spy.name and spy.name in self.held:
            spy.take(spy.name, self.line, frame.f_locals[spy.name])

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Trace:
        if event in ("line", "return"):
            changed = self._changed(frame)
            if self.spy.name:
                wanted = [n for n in changed if n == self.spy.name]
            else:
                wanted = changed if self.line == self.spy.line else []
            for name in wanted:
                self.spy.take(name, self.line, frame.f_locals[name])
            if event == "return" and self.line == self.spy.line and isinstance(arg, Tensor):
                self.spy.take("the return value", self.line, arg)
            self.line = frame.f_lineno
        return self

    def _changed(self, frame: FrameType) -> list[str]:
        """The variables that hold another tensor than before the statement, or a changed one."""
        now = {n: _mark(v) for n, v in frame.f_locals.items() if isinstance(v, Tensor)}
        changed = [n for n, mark in now.items() if self.held.get(n) != mark]
        self.held = now
        self.spy.names.update(now)
        return changed


def _mark(t: Tensor) -> tuple[int, int]:
    try:
        return id(t), t._version
    except Exception:  # an inference tensor does not count its writes
        return id(t), 0

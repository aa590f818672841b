"""Traces of what runs in the user's own process: a module that is called, or a block of code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from attnlab.errors import Refused
from attnlab.records.trace import Trace, TraceOptions
from attnlab.tracer.axes import input_names
from attnlab.tracer.axes.agree import Run
from attnlab.tracer.bind_arguments import bound, keywords, tensors_in
from attnlab.tracer.bind_arguments import named as names_and_sizes
from attnlab.tracer.build_trace import named
from attnlab.tracer.call_setup import notes as told_of
from attnlab.tracer.call_setup import uncompiled
from attnlab.tracer.capture import Given, Shot, capture, finish
from attnlab.tracer.raw_trace import Known, RawTrace, fall_of
from attnlab.tracer.recorder import Recorder, names_of

STRANGE = {
    *("batch-contraction", "softmax-axis", "position-on-batch", "axes-meet", "axes-order"),
    "attention-axis",
}  # what a wrong guess brings


class Seen(NamedTuple):
    """A trace, and what it is of."""

    trace: Trace
    sizes: dict[str, int]
    target: str


def of_call(
    module: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    axes: Mapping[str, input_names.Axes],
    options: TraceOptions,
) -> Seen:
    """The trace of `module(*args, **kwargs)`, which is called at least once."""
    given = bound(module, args, kwargs)
    tensors = dict(tensors_in(given))
    for name in axes:
        if name not in tensors:
            takes = ", ".join(tensors) or "no tensor"
            raise Refused(f"dims: no input is called {name}", f"the call is given {takes}")
    root = module if isinstance(module, nn.Module) else None
    said, sizes = names_and_sizes(tensors, axes, root)

    def call(fresh: Given) -> Any:
        new = dict(fresh)
        return module(*_put(args, given, new), **_put_named(kwargs, new))

    def shot(names: Mapping[str, input_names.Axes]) -> Shot:
        return Shot(
            call=call,
            given=list(tensors.items()),
            root=root,
            axes=dict(names),
            sizes=sizes,
            options=options,
            entry=getattr(module, "forward", module),
        )

    with torch.random.fork_rng(devices=[]):
        raw = capture(shot(said))
        if not axes:
            raw = _turned(raw, lambda names: capture(shot(names)), said)
    return Seen(named(Run(raw, sizes), None), sizes, _called(module))


def _turned(
    raw: RawTrace,
    again: Callable[[Mapping[str, input_names.Axes]], RawTrace],
    said: Mapping[str, Any],
) -> RawTrace:
    """Nobody said which axis is the batch: where (S, B, ...) makes sense of all, it is that."""
    if not any(a.rule in STRANGE for a in raw.accidents):
        return raw
    turn = {"B": "S", "S": "B"}
    swapped = {
        n: tuple(turn.get(a, a) for a in axes) if len(axes) == 3 else axes
        for n, axes in said.items()
    }
    other = again(swapped)
    if any(a.rule in STRANGE for a in other.accidents):
        return raw
    note = "inputs are read as (S, B, ...), which makes sense of every sum; dims says it otherwise"
    return replace(other, notes=(*other.notes, note))


# ---------------------------------------------------------------- a block of code


class Watching(Recorder):
    """Records a block of code. Inputs are those of the first module that is called in it."""

    def __init__(self, axes: Mapping[str, input_names.Axes], frame: FrameType | None) -> None:
        super().__init__()
        self.said = dict(axes)
        self.given: dict[str, Tensor] = dict(_variables(frame, axes))
        self.deep = 0
        self.hooks: list[Any] = []

    def __enter__(self) -> Self:
        self.hooks = [hooks.register_module_forward_pre_hook(self._begins)]
        self.name_inputs(list(self.given.values()))
        self.as_written = uncompiled()
        self.as_written.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.as_written.__exit__(None, None, None)
        for hook in self.hooks:
            hook.remove()

    def _begins(self, module: nn.Module, args: Any) -> None:
        """The first call of a module: what goes in are the inputs."""
        if self.root is not None:
            return
        self.root = module
        self._names = names_of(module)
        kwargs = keywords(sys._getframe(1))
        known = {id(t) for t in self.given.values()}
        for name, tensor in tensors_in(bound(module, args, kwargs)):
            if id(tensor) not in known:
                self.given.setdefault(name, tensor)
        self.name_inputs(list(self.given.values()))
        for hook in self.hooks:
            hook.remove()

    def seen(self, error: BaseException | None) -> Seen:
        """The trace, once the block is over; a block around this one does not see it made."""
        with torch._C.DisableTorchFunction():
            return self._seen(error)

    def _seen(self, error: BaseException | None) -> Seen:
        axes = {n: a for n, a in self.said.items() if n in self.given}
        said, sizes = names_and_sizes(self.given, axes, self.root)
        fall = fall_of(self, error, "") if isinstance(error, Exception) else None
        given = list(self.given.items())

        def told(names: Mapping[str, input_names.Axes]) -> RawTrace:
            return finish(self, given, fall, Known([names.get(n) for n, _ in given], sizes))

        raw = told(said)
        raw = raw if axes else _turned(raw, told, said)
        missing = [n for n in self.said if n not in self.given]
        missing_notes = [f"no input is called {n}, so its axes have no names" for n in missing]
        raw = replace(raw, notes=(*raw.notes, *told_of(self.root, raw.ops), *missing_notes))
        return Seen(named(Run(raw, sizes), None), sizes, _called(self.root))


def _variables(frame: FrameType | None, axes: Mapping[str, input_names.Axes]) -> Iterator[Any]:
    """The caller's variables that the user named."""
    if frame is None:
        return
    for name in axes:
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        if isinstance(value, Tensor):
            yield name, value


# ---------------------------------------------------------------- the call made again


def _put(args: tuple[Any, ...], given: Mapping[str, Any], new: Mapping[str, Any]) -> list[Any]:
    """The arguments with each tensor replaced by the fresh one of its name."""
    names = {id(t): n for n, t in tensors_in(given)}
    return [_replaced(a, names, new) for a in args]


def _put_named(kwargs: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    names = {id(t): n for n, t in tensors_in(dict(kwargs))}
    return {n: _replaced(v, names, new) for n, v in kwargs.items()}


def _replaced(value: Any, names: Mapping[int, str], new: Mapping[str, Any]) -> Any:
    if isinstance(value, Tensor):
        return new.get(names.get(id(value), ""), value)
    if type(value) in (list, tuple):
        return type(value)(_replaced(v, names, new) for v in value)
    if type(value) is dict:
        return {k: _replaced(v, names, new) for k, v in value.items()}
    return value


def _called(module: Any) -> str:
    if module is None:
        return "a block of code"
    return (
        type(module).__name__
        if isinstance(module, nn.Module)
        else getattr(module, "__name__", type(module).__name__)
    )

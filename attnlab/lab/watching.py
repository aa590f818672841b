"""Traces of what runs in the user's own process: a module that is called, or a block of code."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FrameType
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn.modules import module as hooks

from attnlab.lab import dims
from attnlab.lab.axes import Run
from attnlab.lab.capture import Given, Shot, capture, finish
from attnlab.lab.hypers import hypers
from attnlab.lab.look import named
from attnlab.lab.raw import Known, RawTrace, fall_of
from attnlab.lab.recorder import Recorder
from attnlab.records import Look, Trace

STRANGE = {"batch-contraction", "softmax-axis", "position-on-batch"}  # what a wrong guess brings


class Seen(NamedTuple):
    """A trace, and what it is of."""

    trace: Trace
    sizes: dict[str, int]
    target: str


def of_call(
    module: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    axes: Mapping[str, dims.Axes],
    look: Look,
) -> Seen:
    """The trace of `module(*args, **kwargs)`, which is called at least once."""
    given = _bound(module, args, kwargs)
    tensors = dict(_tensors(given))
    root = module if isinstance(module, nn.Module) else None
    said, sizes = _names(tensors, axes, root)

    def call(fresh: Given) -> Any:
        new = dict(fresh)
        return module(*_put(args, given, new), **_put_named(kwargs, new))

    def shot(names: Mapping[str, dims.Axes]) -> Shot:
        return Shot(call=call, given=list(tensors.items()), root=root, axes=dict(names),
                    sizes=sizes, look=look, entry=getattr(module, "forward", module))  # fmt: skip

    with torch.random.fork_rng(devices=[]):
        raw = capture(shot(said))
        if not axes:
            raw = _turned(raw, lambda names: capture(shot(names)), said)
    return Seen(named(Run(raw, sizes), None), sizes, _called(module))


def _turned(
    raw: RawTrace, again: Callable[[Mapping[str, dims.Axes]], RawTrace], said: Mapping[str, Any]
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

    def __init__(self, axes: Mapping[str, dims.Axes], frame: FrameType | None) -> None:
        super().__init__()
        self.said = dict(axes)
        self.given: dict[str, Tensor] = dict(_variables(frame, axes))
        self.deep = 0
        self.hooks: list[Any] = []

    def __enter__(self) -> Self:
        self.hooks = [hooks.register_module_forward_pre_hook(self._begins)]
        self.name_inputs(list(self.given.values()))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        for hook in self.hooks:
            hook.remove()

    def _begins(self, module: nn.Module, args: Any) -> None:
        """The first call of a module: what goes in are the inputs."""
        if self.root is not None:
            return
        self.root = module
        self._names = {id(m): n for n, m in module.named_modules()}
        kwargs = _kwargs(sys._getframe(1))
        known = {id(t) for t in self.given.values()}
        for name, tensor in _tensors(_bound(module, args, kwargs)):
            if id(tensor) not in known:
                self.given.setdefault(name, tensor)
        self.name_inputs(list(self.given.values()))
        for hook in self.hooks:
            hook.remove()

    def seen(self, error: BaseException | None) -> Seen:
        """The trace, once the block is over."""
        axes = {n: a for n, a in self.said.items() if n in self.given}
        said, sizes = _names(self.given, axes, self.root)
        fall = fall_of(self, error, "") if isinstance(error, Exception) else None
        given = list(self.given.items())

        def told(names: Mapping[str, dims.Axes]) -> RawTrace:
            return finish(self, given, fall, Known([names.get(n) for n, _ in given], sizes))

        raw = told(said)
        raw = raw if axes else _turned(raw, told, said)
        missing = [n for n in self.said if n not in self.given]
        notes = [f"no input is called {n}, so its axes have no names" for n in missing]
        raw = replace(raw, notes=(*raw.notes, *notes))
        return Seen(named(Run(raw, sizes), None), sizes, _called(self.root))


def _variables(frame: FrameType | None, axes: Mapping[str, dims.Axes]) -> Iterator[Any]:
    """The caller's variables that the user named."""
    if frame is None:
        return
    for name in axes:
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        if isinstance(value, Tensor):
            yield name, value


def _kwargs(frame: FrameType | None) -> dict[str, Any]:
    """The keyword arguments of the call of a module, which its hooks are not told."""
    while frame is not None:
        if "kwargs" in frame.f_locals and "self" in frame.f_locals:
            found = frame.f_locals["kwargs"]
            return found if isinstance(found, dict) else {}
        frame = frame.f_back
    return {}


# ---------------------------------------------------------------- arguments and their names


def _names(
    tensors: Mapping[str, Tensor], axes: Mapping[str, dims.Axes], root: nn.Module | None
) -> tuple[dict[str, dims.Axes], dict[str, int]]:
    """The names of the axes of every input, and the sizes that they stand for."""
    said = {n: axes[n] for n in axes if n in tensors}
    sizes = {**hypers(root), **dims.sizes_of(tensors, said)}
    rest = {n: t for n, t in tensors.items() if n not in said}
    found = {**said, **dims.guessed(rest, sizes, root)}
    for name, names in found.items():
        for axis, n in zip(names, tensors[name].shape, strict=True):
            if axis.isidentifier() and n != 1:
                sizes.setdefault(axis, n)
    return found, sizes


def _bound(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the parameters, as well as they fit."""
    target = function.forward if isinstance(function, nn.Module) else function
    try:
        return dict(inspect.signature(target).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return {**{f"input{i}": a for i, a in enumerate(args)}, **kwargs}


def _tensors(given: Any, name: str = "") -> Iterator[tuple[str, Tensor]]:
    """The tensors among arguments, with dotted names for those inside lists and dicts."""
    if isinstance(given, Tensor):
        yield name, given
    elif isinstance(given, (list, tuple)):
        for i, value in enumerate(given):
            yield from _tensors(value, f"{name}.{i}")
    elif isinstance(given, Mapping):
        for key, value in given.items():
            inner = name if key in ("args", "kwargs") else f"{name}.{key}".lstrip(".")
            yield from _tensors(value, inner.lstrip("."))


def _put(args: tuple[Any, ...], given: Mapping[str, Any], new: Mapping[str, Any]) -> list[Any]:
    """The arguments with each tensor replaced by the fresh one of its name."""
    names = {id(t): n for n, t in _tensors(given)}
    return [_replaced(a, names, new) for a in args]


def _put_named(kwargs: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    names = {id(t): n for n, t in _tensors(dict(kwargs))}
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

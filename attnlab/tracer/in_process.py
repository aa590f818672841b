"""Traces in the user's own process: of a call, or of a block of code."""

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
from attnlab.tracer.axes.agree import SizedTrace
from attnlab.tracer.bind_arguments import (
    bound_arguments,
    keyword_arguments,
    name_inputs,
    named_tensors,
    repeatable_call,
)
from attnlab.tracer.build_trace import build_trace
from attnlab.tracer.call_setup import TracedCall, setup_notes, uncompiled
from attnlab.tracer.capture import capture, raw_trace_of
from attnlab.tracer.raw_trace import KnownAxes, RawTrace, crash_of
from attnlab.tracer.recorder import Recorder, module_names
from attnlab.tracer.time_first import read_inputs


class TraceOfCall(NamedTuple):
    """A trace, the sizes of its axes, and the name of what was traced."""

    trace: Trace
    sizes: dict[str, int]
    target: str


def trace_call(
    module: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    axes: Mapping[str, input_names.Axes],
    options: TraceOptions,
) -> TraceOfCall:
    """The trace of `module(*args, **kwargs)`, which is called at least once."""
    tensors, call = repeatable_call(module, args, kwargs)
    for name in axes:
        if name not in tensors:
            takes = ", ".join(tensors) or "no tensor"
            raise Refused(f"dims: no input is called {name}", f"the call is given {takes}")
    root = module if isinstance(module, nn.Module) else None

    def read(time_first: bool = False) -> RawTrace:
        named, sizes = name_inputs(tensors, axes, root, time_first)
        traced = TracedCall(
            call=call,
            given=list(tensors.items()),
            root=root,
            axes=named,
            sizes=sizes,
            options=options,
            entry=getattr(module, "forward", module),
        )
        return capture(traced)

    with torch.random.fork_rng(devices=[]):
        raw = read() if axes else read_inputs(read)
    trace = build_trace(SizedTrace(raw, raw.sizes), None)
    return TraceOfCall(trace, raw.sizes, target_name(module))


# ---------------------------------------------------------------- a block of code


class BlockRecorder(Recorder):
    """Records a block of code; its inputs are those of the first module called in it."""

    def __init__(self, axes: Mapping[str, input_names.Axes], frame: FrameType | None) -> None:
        super().__init__()
        self.said = dict(axes)
        self.given: dict[str, Tensor] = dict(_variables(frame, axes))
        self.caller = frame.f_code if frame is not None else None

    def __enter__(self) -> Self:
        self.hook = hooks.register_module_forward_pre_hook(self._first_call)
        self.name_inputs(list(self.given.values()))
        self.as_written = uncompiled()
        self.as_written.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.as_written.__exit__(None, None, None)
        self.hook.remove()

    def _first_call(self, module: nn.Module, args: Any) -> None:
        """Take the arguments of the first module call as inputs."""
        if self.root is not None:
            return
        self.root, self.training = module, module.training
        self._names = module_names(module)
        kwargs = keyword_arguments(sys._getframe(1))
        known = {id(t) for t in self.given.values()}
        for name, tensor in named_tensors(bound_arguments(module, args, kwargs)):
            if id(tensor) not in known:
                self.given.setdefault(name, tensor)
        self.name_inputs(list(self.given.values()))
        self.hook.remove()

    def trace_of_block(
        self, error: BaseException | None, frame: FrameType | None = None
    ) -> TraceOfCall:
        """The trace of the finished block; an outer block does not record its making."""
        with torch._C.DisableTorchFunction():
            raw = self.raw_trace(error)
            broken = [*dict.fromkeys(self._broken_gradients(frame))] if raw.ops else []
            if broken and not any(op.nan for op in raw.ops):
                from attnlab.tracer.views.backward import broken_gradient

                raw = replace(raw, findings=(*raw.findings, broken_gradient(raw, broken)))
            trace = build_trace(SizedTrace(raw, raw.sizes), None)
            return TraceOfCall(trace, raw.sizes, target_name(self.root))

    def _broken_gradients(self, frame: FrameType | None) -> Iterator[str]:
        """The weights, inputs and variables of the caller whose gradient is not finite."""
        weights = self.root.named_parameters() if self.root is not None else ()
        held = frame.f_locals.items() if frame is not None else ()
        for name, t in (*weights, *self.given.items(), *held):
            leaf = isinstance(t, Tensor) and t.is_leaf and t.grad is not None
            if leaf and not t.grad.isfinite().all():
                yield name

    def raw_trace(self, error: BaseException | None) -> RawTrace:
        """The raw trace of the finished block, its inputs named."""
        with torch._C.DisableTorchFunction():
            axes = {n: a for n, a in self.said.items() if n in self.given}
            crash = crash_of(self, error, "") if isinstance(error, Exception) else None
            given = list(self.given.items())

            def read(time_first: bool = False) -> RawTrace:
                said, sizes = name_inputs(self.given, axes, self.root, time_first)
                known = KnownAxes([said[n] for n, _ in given], sizes)
                return raw_trace_of(self, given, crash, known)

            raw = read() if axes else read_inputs(read)
            missing = (n for n in self.said if n not in self.given)
            lost = (f"no input is called {n}, so its axes have no names" for n in missing)
            return replace(raw, notes=(*raw.notes, *setup_notes(self.root, raw.ops), *lost))


def _variables(frame: FrameType | None, axes: Mapping[str, input_names.Axes]) -> Iterator[Any]:
    """The caller's variables that the user named."""
    if frame is None:
        return
    for name in axes:
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        if isinstance(value, Tensor):
            yield name, value


def target_name(module: Any) -> str:
    """The name of the class or function."""
    if module is None:
        return "a block of code"
    return (
        type(module).__name__
        if isinstance(module, nn.Module)
        else getattr(module, "__name__", type(module).__name__)
    )

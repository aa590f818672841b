"""Ways to look at one forward pass, for benchmarks/tracing.py: ours and those of others.

A `Line` is one of them: what is timed, and what is done before and after it without being timed.
A library that is not installed, or that raises, gives a line that says so.
"""

from __future__ import annotations

import io
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from attnlab.tracer.raw_trace import KnownAxes, build_raw_trace
from attnlab.tracer.recorder import Recorder


def nothing() -> None:
    return None


class Line(NamedTuple):
    name: str
    run: Callable[[], object]
    before: Callable[[], object] = nothing
    after: Callable[[], object] = nothing


class Case(NamedTuple):
    """A model and its inputs, by argument names, with the names of their axes."""

    name: str
    module: nn.Module
    inputs: dict[str, torch.Tensor]
    axes: dict[str, str]
    sizes: dict[str, int]

    def call(self) -> object:
        return self.module(**self.inputs)


class Empty(TorchFunctionMode):
    """The floor: a mode that does nothing."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def ours(case: Case) -> list[Line]:
    """Plain, the floor, and a trace in three depths; the rows are made after the run."""
    known = KnownAxes([case.axes[n].split() for n in case.inputs], case.sizes)

    def empty() -> None:
        with Empty():
            case.call()

    def record() -> Recorder:
        recorder = Recorder(case.module)
        recorder.name_inputs(list(case.inputs.values()))
        with recorder:
            case.call()
        return recorder

    return [
        Line("plain", case.call),
        Line("empty TorchFunctionMode", empty),
        Line("attnlab, the run", record),
        Line("attnlab, rows", lambda: build_raw_trace(record())),
        Line("attnlab, rows and axes", lambda: build_raw_trace(record(), known=known)),
    ]


def others(case: Case) -> Iterator[tuple[str, Callable[[], Line]]]:
    """Name and builder of each; a builder raises ImportError without its library."""
    yield "torchinfo", lambda: torchinfo(case)
    yield "torch DebugMode, stack", lambda: debug_mode(case)
    yield "torchsnooper", lambda: snooper(case)
    yield "torchlens", lambda: torchlens(case)


def torchinfo(case: Case) -> Line:
    import torchinfo as library

    return Line(
        "torchinfo",
        lambda: library.summary(case.module, input_data=case.inputs, verbose=0, depth=9),
    )


def debug_mode(case: Case) -> Line:
    from torch.utils._debug_mode import DebugMode

    def run() -> str:
        with DebugMode(record_torchfunction=True, record_stack_trace=True) as mode:
            case.call()
        return str(mode.debug_string())

    return Line("torch DebugMode, stack", run)


def snooper(case: Case) -> Line:
    """It watches functions line by line: here every forward that is not PyTorch's own."""
    import pysnooper  # noqa: F401 - says that it is missing before anything is replaced

    # TorchSnooper asks a module that setuptools no longer has for its own version.
    stand_in: Any = types.ModuleType("pkg_resources")
    stand_in.DistributionNotFound = LookupError
    stand_in.get_distribution = lambda _: types.SimpleNamespace(version="")
    sys.modules.setdefault("pkg_resources", stand_in)
    import torchsnooper

    watched: dict[type[nn.Module], Any] = {
        type(m): type(m).forward
        for m in case.module.modules()
        if not type(m).__module__.startswith("torch.")
    }

    def before() -> None:
        for kind, forward in watched.items():
            kind.forward = torchsnooper.snoop(output=io.StringIO())(forward)  # type: ignore[method-assign]

    def after() -> None:
        for kind, forward in watched.items():
            kind.forward = forward  # type: ignore[method-assign]

    return Line("torchsnooper", case.call, before, after)


def torchlens(case: Case) -> Line:
    """Its wrapping of all functions of PyTorch, once in a process, is not timed."""
    import torchlens as library
    from torchlens import user_funcs
    from torchlens.backends.torch import wrappers

    user_funcs.warn_parallel = nothing  # it refuses the forked process that memory is measured in

    def run() -> object:
        return library.trace(case.module, [], dict(case.inputs))

    return Line("torchlens", run, wrappers.wrap_torch, wrappers.unwrap_torch)

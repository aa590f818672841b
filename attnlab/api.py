"""Traces from Python: `attnlab.trace(module, x)`, and `with attnlab.tracing(...) as trace:`.

Both run in this process, on the user's own tensors; what they show is what `attnlab trace` shows.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from attnlab.records.trace import Crash, Finding, Op, Trace, TraceOptions
from attnlab.tracer.axes.input_names import parse_dims
from attnlab.tracer.in_process import BlockRecorder, TraceOfCall, trace_call

Dims = str | Mapping[str, str | Sequence[str]]
WIDEST = 200


class Traced:
    """A trace that displays itself at a prompt, with `print` and in a notebook."""

    def __init__(self, seen: TraceOfCall | None = None) -> None:
        self._seen = seen

    @property
    def trace(self) -> Trace:
        """The record: operations, findings, crash and notes."""
        return self._finished.trace

    @property
    def ops(self) -> tuple[Op, ...]:
        """One row for each output tensor of each operation, in the order in which they ran."""
        return self.trace.ops

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.trace.findings

    @property
    def crash(self) -> Crash | None:
        """What raised, or None."""
        return self.trace.crash

    @property
    def notes(self) -> tuple[str, ...]:
        """What the trace could not see, and why."""
        return self.trace.notes

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that the names of axes stand for."""
        return dict(self._finished.sizes)

    @property
    def _finished(self) -> TraceOfCall:
        if self._seen is None:
            raise RuntimeError("the trace is complete once its `with` block has ended")
        return self._seen

    def text(self, width: int = 0) -> str:
        """The page that `attnlab trace` prints, `width` columns wide."""
        seen = self._finished
        wide = width or min(shutil.get_terminal_size((100, 24)).columns, WIDEST)
        from attnlab.render import show  # rich is as large as all of the tracer

        return show.as_text(seen.trace, seen.sizes, seen.target, wide)

    def __str__(self) -> str:
        return self.text() if self._seen is not None else "<a trace that has not ended>"

    def __repr__(self) -> str:
        if self._seen is None:
            return "<a trace that has not ended>"
        grave = sum(f.severity != "note" for f in self.findings)
        end = f", crashed at {self.crash.op or self.crash.error}" if self.crash else ""
        return f"<trace of {self._seen.target}: {len(self.ops)} operations, {grave} findings{end}>"

    def _repr_html_(self) -> str:
        from attnlab.render import show

        seen = self._finished
        return show.as_html(seen.trace, seen.sizes, seen.target)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython's signature
        printer.text(str(self))


class Tracing(Traced):
    """Records its `with` block; the trace can be read once the block has ended."""

    def __init__(self, dims: Dims) -> None:
        super().__init__()
        self._axes = parse_dims(dims)

    def __enter__(self) -> Self:
        self._recorder = BlockRecorder(self._axes, sys._getframe(1))  # noqa: SLF001 - the caller's names
        self._recorder.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """An exception goes on: the trace up to it can be read where it is caught."""
        self._recorder.__exit__(kind, error, where)
        self._seen = self._recorder.trace_of_block(error)


def tracing(dims: Dims = "") -> Tracing:
    """A trace of all that runs in a `with` block.

    `with attnlab.tracing("x: B S D") as trace: net(x)`; then `trace.findings`, or `print(trace)`.

    `dims` names the axes of inputs, by the parameters of the first module that is called or by
    variables of the caller: "x: B S D, mask: B S S". What is not named is guessed from well-known
    names. Gradients, modes and autocast stay as they are in the block. Raises `Refused` where
    names do not fit a tensor.
    """
    return Tracing(dims)


def trace(
    module: Callable[..., Any],
    *inputs: Any,
    dims: Dims = "",
    options: TraceOptions | None = None,
    **kwargs: Any,
) -> Traced:
    """Trace `module(*inputs, **kwargs)`: an `nn.Module` as it is, or a function of tensors.

    The call runs under `no_grad` on copies of the tensors, and again where a NaN or one of
    `options` needs it, so state kept between calls (counters, running statistics) advances;
    torch's random state does not. If the call raises, `.crash` of the trace says why. Use
    `tracing` for a module whose forward computes gradients. Raises `Refused` if `dims` names an
    input that does not exist.
    """
    return Traced(trace_call(module, inputs, kwargs, parse_dims(dims), options or TraceOptions()))


__all__ = ["Traced", "Tracing", "trace", "tracing"]

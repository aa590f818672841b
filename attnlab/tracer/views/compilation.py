"""How torch.compile captures a call: its graphs, where they break, and which sizes compile anew.

The graphs are captured and run as they are, by a backend that only counts them, so no compiler for
kernels is needed. Four calls with more positions, or samples, tell whether another size compiles
anew each time, some times, or never.
"""

import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from attnlab.records.trace import Compilation, GraphBreak, Recompilation
from attnlab.tracer.call_setup import TracedCall
from attnlab.tracer.cast import Given, fresh
from attnlab.tracer.raw_trace import RawTrace, display_path, first_line
from attnlab.tracer.recorder import is_library_code

AXES = ("S", "T", "B")  # that change from call to call; the others are those of weights
MORE = (1, 2, 3, 4)  # positions, in the second call and those after it
GUARDS = "torch._dynamo.guards.__recompiles"  # the log that says why
ARTIFACT = "recompiles"
USER_CODE = re.compile(r'File "([^"]+)", line (\d+), in \w+\n\s*([^\n]+)')
SWITCH = "TORCHDYNAMO_DISABLE"
BRANCH = "a branch on a tensor's value; torch.where or torch.cond keeps it in one graph"
LEFT = "captured nothing: the whole call was left to Python"


@dataclass
class Counter:
    """A backend of torch.compile: it keeps the reasons of graphs and runs them as they are."""

    graphs: int = 0
    reasons: list[Any] = field(default_factory=list)

    def __call__(self, graph: Any, _: Sequence[Tensor]) -> Any:
        self.graphs += 1
        reason = getattr(graph, "compile_subgraph_reason", None)
        if reason is not None and reason.graph_break:
            self.reasons.append(reason)
        return graph.forward


class Reasons(logging.Handler):
    """The messages of a log."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def add_compilation(traced: TracedCall, raw: RawTrace) -> RawTrace:
    """The trace with what torch.compile makes of the call; nothing for one that crashed."""
    if raw.crash is not None:
        return raw
    counter = Counter()
    with compiled(traced, counter) as call, recompile_log() as log:
        try:
            _call(call, traced, traced.given)
        except Exception as error:
            text = f"torch.compile raised {type(error).__name__}: {first_line(error)}"
            seen = Compilation(graphs=counter.graphs, breaks=(), problem=text)
            return replace(raw, compilation=seen)
        if not counter.graphs:
            seen = Compilation(graphs=0, breaks=(), problem=LEFT)
            return replace(raw, compilation=seen)
        graphs, breaks = counter.graphs, tuple(map(_graph_break, counter.reasons))
        # Other sizes are told of one axis after the other: the first is dynamic by then.
        again = [_recompilation(axis, call, traced, counter, log) for axis in _free_axes(traced)]
    found = tuple(change for change in again if change)
    breaks = breaks or _left_to_python(traced)
    seen = Compilation(graphs=graphs, breaks=tuple(dict.fromkeys(breaks)), recompilations=found)
    return replace(raw, compilation=seen)


def _left_to_python(traced: TracedCall) -> tuple[GraphBreak, ...]:
    """Where a function was left to Python as a whole, of which no break is told: its calls may have
    graphs of their own."""
    with compiled(traced, Counter(), whole=True) as call, recompile_log():
        try:
            _call(call, traced, traced.given)
        except Exception as error:
            places = USER_CODE.findall(str(error))
            file, line, source = places[-1] if places else ("", "0", "")
            why = first_line(error).partition(" (unhinted")[0]
            reason = f"the function is left to Python: {why}"
            place = display_path(file) if file else ""
            return (GraphBreak(file=place, line=int(line), source=source, reason=reason),)
    return ()


@contextmanager
def compiled(traced: TracedCall, counter: Counter, whole: bool = False) -> Iterator[Any]:
    """The call with its module compiled, as `torch.compile(module)` does; nothing stays behind.
    `whole`: what cannot be one graph raises."""
    off = os.environ.pop(SWITCH, None)  # what is graded runs without a compiler
    torch._dynamo.reset()
    root = traced.root
    before = root._compiled_call_impl if root is not None else None
    try:
        if root is None:
            yield torch.compile(traced.call, backend=counter, fullgraph=whole)
        else:
            root.compile(backend=counter, fullgraph=whole)
            code = getattr(getattr(type(root), "forward", None), "__code__", None)
            if code and is_library_code(code.co_filename):  # its frames would be skipped
                inner = torch._dynamo.external_utils.wrap_inline(root._call_impl)
                root._compiled_call_impl = torch.compile(inner, backend=counter, fullgraph=whole)
            yield traced.call
    finally:
        if root is not None:
            root._compiled_call_impl = before
        if off is not None:
            os.environ[SWITCH] = off
        torch._dynamo.reset()


@contextmanager
def recompile_log() -> Iterator[Reasons]:
    """Listen to why code is compiled anew; PyTorch prints nothing meanwhile."""
    artifacts = torch._logging._internal.log_state.artifact_names
    handler, told, silent = Reasons(), logging.getLogger(GUARDS), logging.getLogger("torch")
    wanted = ARTIFACT in artifacts
    level, spoken, quiet = told.level, told.propagate, silent.level
    handlers = list(silent.handlers)
    told.addHandler(handler)
    told.setLevel(logging.DEBUG)
    told.propagate = False
    silent.handlers.clear()
    silent.setLevel(logging.CRITICAL)
    artifacts.add(ARTIFACT)
    try:
        yield handler
    finally:
        told.removeHandler(handler)
        told.setLevel(level)
        told.propagate = spoken
        silent.handlers.extend(handlers)
        silent.setLevel(quiet)
        if not wanted:
            artifacts.discard(ARTIFACT)


def _call(call: Any, traced: TracedCall, given: Given) -> None:
    torch.manual_seed(traced.seed)
    with torch.no_grad():
        call(fresh(given))


# ---------------------------------------------------------------- other sizes


def _free_axes(traced: TracedCall) -> list[str]:
    named = {axis for axes in traced.axes.values() for axis in axes}
    return [axis for axis in AXES if axis in named]


def _recompilation(
    axis: str, call: Any, traced: TracedCall, counter: Counter, log: Reasons
) -> Recompilation | None:
    """What larger sizes of one axis cost; None where the module does not take them."""
    size, compiled_anew, told = _size(traced, axis), [], len(log.texts)
    for more in MORE:
        before = counter.graphs
        with suppress(Exception):
            _call(call, traced, _longer(traced, axis, more))
            compiled_anew.append(counter.graphs > before)
    if len(compiled_anew) < len(MORE):
        return None
    return Recompilation(
        axis=axis,
        sizes=tuple(size + more for more in MORE),
        compiled=tuple(compiled_anew),
        reason=next(map(_failed_guard, log.texts[told:]), ""),
    )


def _size(traced: TracedCall, axis: str) -> int:
    sizes = (
        t.shape[axes.index(axis)]
        for name, t in traced.given
        if t is not None and axis in (axes := traced.axes.get(name, ())) and len(axes) == t.dim()
    )
    return next(sizes, 0)


def _longer(traced: TracedCall, axis: str, more: int) -> Given:
    """The inputs with the last entries of an axis once more at its end, wherever it stands."""
    return [(name, _grow(t, traced.axes.get(name, ()), axis, more)) for name, t in traced.given]


def _grow(t: Tensor | None, axes: tuple[str, ...], axis: str, more: int) -> Tensor | None:
    if t is None or len(axes) != t.dim():
        return t
    for at in (at for at, name in enumerate(axes) if name.rstrip("'") == axis):
        t = torch.cat([t, *[t.narrow(at, t.shape[at] - 1, 1)] * more], dim=at)
    return t


def _failed_guard(text: str) -> str:
    """The guard of a message such as "... triggered by ...: - 0/0: tensor 'x' size mismatch"."""
    lines = [line.strip(" -") for line in text.splitlines() if line.strip().startswith("-")]
    return lines[0].partition(": ")[2] or lines[0] if lines else ""


# ---------------------------------------------------------------- in the words of the user


def _graph_break(reason: Any) -> GraphBreak:
    """The innermost line of the user's that a graph ended at, and why."""
    stack = [frame for frame in reason.user_stack if not is_library_code(frame.filename)]
    frame = (stack or list(reason.user_stack) or [None])[-1]
    return GraphBreak(
        file=display_path(frame.filename) if frame else "",
        line=(frame.lineno or 0) if frame else 0,
        source=(frame.line or "").strip() if frame else "",
        reason=_explanation(reason.reason),
    )


def _explanation(text: str) -> str:
    """PyTorch's own sentence of explanation; its first line where it has none."""
    lines = [line.strip() for line in text.splitlines()]
    told = [line.removeprefix("Explanation:") for line in lines if line.startswith("Explanation:")]
    if lines[:1] and lines[0].startswith("generic_jump"):  # that is all PyTorch says
        return BRANCH
    return (told or lines or [""])[0].strip()

"""Traces and properties from Python: `attnlab.trace(module, x)`, `attnlab.verify(module, x)`,
`attnlab.diff(mine, reference, x)`, and `with attnlab.tracing(...) as trace:`.

All run in this process, on the user's own tensors, and show what the commands show.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from attnlab.errors import PropertyFailed
from attnlab.records import Report, Triage
from attnlab.records.diagnosis import Diagnosis, DiffReport
from attnlab.records.trace import Crash, Finding, Op, Trace, TraceOptions
from attnlab.tracer.axes.input_names import parse_dims
from attnlab.tracer.in_process import BlockRecorder, TraceOfCall, target_name, trace_call

if TYPE_CHECKING:
    from torch import Tensor

    from attnlab.records import CheckResult, LiveReport, Promise, Suspicion
    from attnlab.render.json import Page
    from attnlab.testing.assertions import Options
    from attnlab.training.watch import TrainingWatch

Dims = str | Mapping[str, str | Sequence[str]]
WIDEST = 200


class Shown:
    """Displays itself at a prompt, with `print` and in a notebook, as the page of a command."""

    def _page(self) -> Page:
        raise NotImplementedError

    def _label(self) -> str:
        """Of the page, for a reader of screens."""
        raise NotImplementedError

    def text(self, width: int = 0) -> str:
        """The page that the command prints, `width` columns wide."""
        wide = width or min(shutil.get_terminal_size((100, 24)).columns, WIDEST)
        from attnlab.render import show  # rich is as large as all of the tracer

        return show.as_text(self._page(), wide)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        from attnlab.render.html import as_fragment

        return as_fragment(self._page(), self._label())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:  # noqa: ARG002 - IPython's signature
        printer.text(str(self))


class Traced(Shown):
    """A trace."""

    def __init__(self, seen: TraceOfCall | None = None) -> None:
        self._seen = seen

    def _label(self) -> str:
        return f"trace of {self._finished.target}"

    def _page(self) -> Page:
        from attnlab.render import show

        seen = self._finished
        return show.trace_page(seen.trace, seen.sizes, seen.target)

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

    def __str__(self) -> str:
        return self.text() if self._seen is not None else "<a trace that has not ended>"

    def __repr__(self) -> str:
        if self._seen is None:
            return "<a trace that has not ended>"
        grave = sum(f.severity != "note" for f in self.findings)
        end = f", crashed at {self.crash.op or self.crash.error}" if self.crash else ""
        return f"<trace of {self._seen.target}: {len(self.ops)} operations, {grave} findings{end}>"


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
        self._seen = self._recorder.trace_of_block(error, sys._getframe(1))  # noqa: SLF001


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


# ---------------------------------------------------------------- properties


class Verified(Shown):
    """What a model promises, and which properties hold on a batch of its own."""

    def __init__(self, found: LiveReport, target: str) -> None:
        self._found, self._target = found, target

    @property
    def promises(self) -> tuple[Promise, ...]:
        """What the model seems to promise, each with the reason."""
        return self._found.promises

    @property
    def properties(self) -> tuple[CheckResult, ...]:
        """Each property: passed, failed, skipped (not applicable) or error (not looked at)."""
        return self._found.checks

    @property
    def broken(self) -> tuple[CheckResult, ...]:
        """The properties that do not hold."""
        return tuple(check for check in self.properties if check.outcome == "failed")

    def _page(self) -> Page:
        from attnlab.render import show

        return show.verify_page(self._found, self._target)

    def _label(self) -> str:
        return f"properties of {self._target}"

    def __repr__(self) -> str:
        names = ", ".join(check.id for check in self.broken) or "nothing"
        return f"<properties of {self._target}: {names} broken>"


def verify(
    module: Callable[..., Any],
    *inputs: Any,
    promises: Sequence[str] = (),
    no_promises: Sequence[str] = (),
    dims: Dims = "",
    **kwargs: Any,
) -> Verified:
    """Look at the properties of `module` on the batch `module(*inputs, **kwargs)`.

    A copy of the module is called again with inputs changed along one axis: samples must not mix,
    the future must not leak where causality is promised, masked keys must change nothing, and so
    on. `promises` adds to what is inferred ("causal", "ordered"), `no_promises` takes from it, or
    leaves out a property by its id. `dims="x: B S D"` says which axis is which.
    """
    from attnlab.candidate.live_properties import Hints, live_properties
    from attnlab.target.promises import layout_promises, parse_names

    promised, denied = parse_names(promises, no_promises)
    layout = layout_promises(f"x: {' '.join(axes)}" for axes in parse_dims(dims).values())
    hints = Hints(promised=(*promised, *layout), unpromised=denied)
    return Verified(live_properties(module, inputs, kwargs, hints), target_name(module))


# ---------------------------------------------------------------- beside one that works


class Compared(Shown):
    """Where a module parts from one that works, and how."""

    def __init__(self, found: DiffReport, target: str, reference: str) -> None:
        self.report = found
        self._target, self._reference = target, reference

    @property
    def outcome(self) -> str:
        """One of "same", "different", "cannot-compare" and "crashed", which `report` explains."""
        return self.report.outcome

    @property
    def diagnosis(self) -> tuple[Diagnosis, ...]:
        """The wrong lines: each with how it is wrong, and whether that is confirmed."""
        return self.report.diagnosis

    def _page(self) -> Page:
        from attnlab.render import show

        return show.diff_page(self.report, self._target, self._reference)

    def _label(self) -> str:
        return f"{self._target} beside {self._reference}"

    def __repr__(self) -> str:
        lines = ", ".join(f"{d.file}:{d.line} {d.relation}" for d in self.diagnosis)
        return f"<{self._label()}: {lines or self.outcome}>"


def diff(
    module: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: str | Tensor,
    weights: Mapping[str, str] | str = "copied",
    **options: Unpack[Options],
) -> Compared:
    """Say at which line `module` parts from `reference`, and how.

    Both are copied and called on drawn inputs, in float64. `inputs` are example tensors, or texts
    such as "x: B S D" with `sizes={"D": 16}`; `weights` and `options` are those of
    `attnlab.testing.assert_matches`. Raises `Refused` where they do not say enough.
    """
    from attnlab.grading.in_process import differences
    from attnlab.testing.assertions import compared_subject

    names = target_name(module), target_name(reference)
    try:
        subject = compared_subject(module, reference, inputs, weights, options)
    except PropertyFailed as error:
        return Compared(DiffReport(outcome="crashed", message=str(error)), *names)
    return Compared(differences(subject), *names)


# ---------------------------------------------------------------- likely causes


class Triaged(Shown):
    """A ranked list of likely causes, with what was looked at and what was not."""

    def __init__(self, found: Triage, report: Report) -> None:
        self._found, self._report = found, report

    @property
    def suspicions(self) -> tuple[Suspicion, ...]:
        """The likeliest first, each with its evidence and an experiment."""
        return self._found.suspicions

    @property
    def looked_at(self) -> tuple[str, ...]:
        return self._found.looked_at

    @property
    def not_looked_at(self) -> tuple[str, ...]:
        """Each with the reason."""
        return self._found.not_looked_at

    def _page(self) -> Page:
        from attnlab.render import show

        return show.triage_page(self._found, self._report)

    def _label(self) -> str:
        return f"triage of {self._found.target}"

    def __repr__(self) -> str:
        rules = ", ".join(s.rule for s in self.suspicions if s.severity != "note") or "nothing"
        return f"<triage of {self._found.target}: {rules}>"


def triage(
    module: Callable[..., Any], *inputs: Any, dims: Dims = "", symptom: str = "", **kwargs: Any
) -> Triaged:
    """Say what is likely wrong with `module`, by a trace of `module(*inputs, **kwargs)` and by its
    properties on this batch. `symptom` ("nan", "val-too-good", ...) reorders the list as
    `attnlab triage --symptom` does. Raises `Refused` as `trace` does."""
    seen = trace(module, *inputs, dims=dims, **kwargs)
    live = None if seen.crash else verify(module, *inputs, dims=dims, **kwargs)
    report = Report(
        outcome="ok",
        trace=seen.trace,
        target=target_name(module),
        checks=live.properties if live else (),
        promises=live.promises if live else (),
    )
    return Triaged(_ranked(report, report.target, symptom), report)


def _ranked(report: Report, target: str, symptom: str = "") -> Triage:
    from attnlab.suspicions import Wishes, make_triage

    return make_triage(target, report, Wishes(symptom=symptom))


class WatchedTraining(Triaged):
    """What a watched block of training showed; complete once the block has ended."""

    def __init__(self) -> None:
        from attnlab.training.watch import TrainingWatch

        self._watch: TrainingWatch = TrainingWatch()
        super().__init__(Triage(target="training", outcome="nothing-found"), Report(outcome="ok"))

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        place: TracebackType | None,
    ) -> None:
        from attnlab.training.report import build_report

        self._watch.__exit__(kind, error, place)
        told = f"{type(error).__name__}: {error}" if isinstance(error, Exception) else ""
        report = Report(outcome="ok", training=build_report(self._watch.log(told)))
        self._found, self._report = _ranked(report, "training"), report


def watch_training() -> WatchedTraining:
    """Watch the training in a `with` block; the script goes on as it is, only slower.

    with attnlab.watch_training() as seen:
        train(model, steps=20)
    print(seen)
    """
    return WatchedTraining()


__all__ = [
    "Compared",
    "Shown",
    "Traced",
    "Tracing",
    "Triaged",
    "Verified",
    "WatchedTraining",
    "diff",
    "trace",
    "tracing",
    "triage",
    "verify",
    "watch_training",
]

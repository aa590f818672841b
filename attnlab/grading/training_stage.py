"""The training stage: a user's script under watch, its log judged by the rules."""

from __future__ import annotations

from dataclasses import replace

from attnlab.candidate.host import Died, Host, checked_answer
from attnlab.grading.trace_stage import LONGEST, surroundings
from attnlab.records import Finding, Job, LiveReport, Trace, TrainingReport, from_json
from attnlab.tracer.axes.agree import SizedTrace
from attnlab.tracer.build_trace import build_trace, unique_findings
from attnlab.tracer.raw_trace import RawTrace, is_consistent
from attnlab.training.log import TrainingLog
from attnlab.training.rules import find, summary

UNSEEN = "backward: what happens inside it (checkpoints, custom functions) is not recorded"
# Rules that a mask and a shape of a whole step raise in losses and metrics on purpose.
OF_STEP = {"batch-contraction", "unused-parameter", "unused-input", "output-constant"}


def watch_training(job: Job, host: Host) -> TrainingReport:
    """What the first steps of the job's script show."""
    said = {"promised": list(job.promised), "unpromised": list(job.unpromised)}
    answer = checked_answer(
        host.ask("watch_training", **surroundings(job), steps=job.steps, **said)
    )
    try:
        log = from_json(TrainingLog, str(answer.get("log", ""))[:LONGEST])
        live = from_json(LiveReport, str(answer["live"])[:LONGEST]) if "live" in answer else None
        trace = _trace(str(answer.get("trace", "")))
    except (TypeError, ValueError) as error:
        raise Died("crashed", "answered with no training") from error
    found = unique_findings(tuple(find(log)))
    return TrainingReport(
        steps=len(log.steps),
        losses=tuple(call.value for call in log.backwards if call.value is not None),
        findings=found,
        properties=live.checks if live else (),
        trace=trace,
        looked_at=tuple(summary(log)),
        not_looked_at=(UNSEEN, *log.not_seen),
        crash=log.crash,
        redirected=log.redirected,
    )


def _trace(text: str) -> Trace | None:
    if not text:
        return None
    raw = from_json(RawTrace, text[:LONGEST])
    if not is_consistent(raw):
        raise ValueError("a trace that makes no sense")
    trace = build_trace(SizedTrace(raw, raw.sizes), None)
    return replace(trace, findings=tuple(map(_in_step, trace.findings)))


def _in_step(finding: Finding) -> Finding:
    """Losses sum over the batch on purpose, and other steps may use what this one does not."""
    if finding.rule in OF_STEP and finding.severity == "warning":
        return replace(finding, severity="note")
    return finding

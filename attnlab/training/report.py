"""Make the report of a training run from its log, a step's trace and the model's properties."""

from __future__ import annotations

import math
from dataclasses import replace

from attnlab.records import Finding, LiveReport, Trace, TrainingReport
from attnlab.tracer.axes.agree import SizedTrace
from attnlab.tracer.build_trace import build_trace, unique_findings
from attnlab.tracer.raw_trace import RawTrace
from attnlab.training.log import TrainingLog
from attnlab.training.origins import move_to_origins
from attnlab.training.rules import find, summary

UNSEEN = "backward: what happens inside it (checkpoints, custom functions) is not recorded"
NO_STEPS = (
    "training: no optimizer of torch.optim took a step, so nothing is known of the loop, its "
    "losses and its gradients; attnlab trace FILE:NAME and verify FILE:NAME look at one call"
)
BROKEN = "properties of the model: its weights were no numbers any more"
# Losses and metrics sum over the batch on purpose, and other steps may use what this one does not.
FORWARD = {"nan-origin", "infinity-origin"}  # what breaks the backward pass as well
OF_STEP = {"batch-contraction", "unused-parameter", "unused-input", "output-constant"}


def build_report(
    log: TrainingLog, raw: RawTrace | None = None, live: LiveReport | None = None
) -> TrainingReport:
    """What the log's rules find, beside the findings of one step and the properties."""
    trace: Trace | None = None
    found = list(find(log))
    if raw is not None:
        whole = build_trace(SizedTrace(raw, raw.sizes), None)
        lost = live is not None and any(
            c.id == "finite" and c.outcome == "failed" for c in live.checks
        )
        trace = replace(whole, findings=tuple(_in_step(f, lost) for f in whole.findings))
        found = list(move_to_origins(found, raw, log.source))
        if log.broken is not None:
            trace, found = _one_origin(log, trace, found)
    return TrainingReport(
        steps=len(log.steps),
        losses=tuple(call.value for call in log.backwards if call.value is not None),
        findings=unique_findings(tuple(found)),
        properties=live.checks if live and not log.broken_step else (),
        trace=trace,
        looked_at=tuple(summary(log)),
        not_looked_at=(
            *([UNSEEN] if log.steps else [] if log.crash else [NO_STEPS]),
            *([BROKEN] if log.broken_step else []),
            *(f"--eval {e.name}: {e.error}" for e in log.evaluations if e.error),
            *log.not_seen,
        ),
        crash=log.crash,
        one_batch=log.one_batch,
        redirected=log.redirected,
    )


def _one_origin(
    log: TrainingLog, trace: Trace, found: list[Finding]
) -> tuple[Trace, list[Finding]]:
    """Of a step that broke: what its forward pass met first, or what its backward pass did."""
    losses = [c.value for c in log.backwards if c.step + 1 == log.broken_step]
    if all(value is not None and math.isfinite(value) for value in losses):
        left = tuple(f for f in trace.findings if f.rule not in FORWARD)  # of what clips gradients
        return replace(trace, findings=left), found
    if any(f.rule in FORWARD and f.severity != "note" for f in trace.findings):
        found = [f for f in found if f.rule != "gradient-origin"]
    return trace, found


def _in_step(finding: Finding, lost: bool) -> Finding:
    """The finding as it counts in training; `lost` where the model's output holds NaN."""
    if lost and finding.rule == "no-visible-key":
        says = f"{finding.message}. In eval mode its output is NaN here"
        return replace(finding, severity="error", message=says)
    quiet = finding.rule in OF_STEP and finding.severity == "warning"
    quiet &= finding.op != "normalize"
    return replace(finding, severity="note") if quiet else finding

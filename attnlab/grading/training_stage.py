"""The training stage: a user's script under watch, its log judged by the rules."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from attnlab.candidate.host import Died, Host, Raised, checked_answer
from attnlab.grading.example_run import LONGEST, surroundings
from attnlab.records import Job, LiveReport, TrainingReport, from_json
from attnlab.tracer.raw_trace import RawTrace, is_consistent
from attnlab.training.log import TrainingLog
from attnlab.training.report import build_report
from attnlab.training.rules.losses import broken_step


def watch_training(job: Job, host: Host, renew: Callable[[], Host]) -> TrainingReport:
    """What the first steps of the job's script show. Where a loss is no number, or the first step
    raises, it runs once more in a process that `renew` gives, and that step is looked at
    closely."""
    said = {"promised": list(job.promised), "unpromised": list(job.unpromised)}
    asked = {**surroundings(job), "steps": job.steps, **said}
    log, raw, live = _read(
        host.ask("watch_training", **asked, overfit=job.overfit, evaluate=list(job.evaluate))
    )
    if step := broken_step(log):
        try:
            again = renew().ask("watch_training", **{**asked, "steps": step}, retrace=True)
            log, raw = _with_origin(replace(log, broken_step=step), raw, *_read(again)[:2])
        except (Died, Raised):
            log = replace(log, broken_step=step)
    elif log.crash and log.optimizers and not log.steps:
        with suppress(Died, Raised):
            raw = _read(renew().ask("watch_training", **{**asked, "steps": 1}, retrace=True))[1]
    return build_report(log, raw, live)


def _read(answer: dict[str, Any]) -> tuple[TrainingLog, RawTrace | None, LiveReport | None]:
    told = checked_answer(answer)
    try:
        log = from_json(TrainingLog, str(told.get("log", ""))[:LONGEST])
        live = from_json(LiveReport, str(told["live"])[:LONGEST]) if "live" in told else None
        raw = from_json(RawTrace, str(told["trace"])[:LONGEST]) if told.get("trace") else None
    except (TypeError, ValueError) as error:
        raise Died("crashed", "answered with no training") from error
    if raw is not None and not is_consistent(raw):
        raise Died("crashed", "answered with a trace that makes no sense")
    return log, raw, live


def _with_origin(
    log: TrainingLog, raw: RawTrace | None, again: TrainingLog, closely: RawTrace | None
) -> tuple[TrainingLog, RawTrace | None]:
    """The log with what the second run shows of the step that broke, and that step's trace."""
    if broken_step(again) != log.broken_step:
        why = f"the step {log.broken_step} that broke: in a second run the numbers were others"
        return replace(log, not_seen=(*log.not_seen, why)), raw
    return replace(log, broken=again.broken), closely or raw

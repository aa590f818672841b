"""The training stage: a user's script under watch, its log judged by the rules."""

from attnlab.candidate.host import Died, Host, checked_answer
from attnlab.grading.trace_stage import LONGEST, surroundings
from attnlab.records import Job, LiveReport, TrainingReport, from_json
from attnlab.tracer.raw_trace import RawTrace, is_consistent
from attnlab.training.log import TrainingLog
from attnlab.training.report import build_report


def watch_training(job: Job, host: Host) -> TrainingReport:
    """What the first steps of the job's script show."""
    said = {"promised": list(job.promised), "unpromised": list(job.unpromised)}
    answer = checked_answer(
        host.ask(
            "watch_training", **surroundings(job), steps=job.steps, overfit=job.overfit, **said
        )
    )
    try:
        log = from_json(TrainingLog, str(answer.get("log", ""))[:LONGEST])
        live = from_json(LiveReport, str(answer["live"])[:LONGEST]) if "live" in answer else None
        raw = from_json(RawTrace, str(answer["trace"])[:LONGEST]) if answer.get("trace") else None
    except (TypeError, ValueError) as error:
        raise Died("crashed", "answered with no training") from error
    if raw is not None and not is_consistent(raw):
        raise Died("crashed", "answered with a trace that makes no sense")
    return build_report(log, raw, live)

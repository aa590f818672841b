"""The check stage of a user's own module: the properties that it seems to promise."""

from typing import Any

from attnlab.candidate.host import Died, Host, checked_answer
from attnlab.grading.example_run import LONGEST, SEED, build_example, surroundings
from attnlab.probe.inputs import draw
from attnlab.probe.inputs.draw import Dice
from attnlab.records import Contract, Job, LiveReport, TrainingReport, from_json
from attnlab.records.ablation import AblationReport
from attnlab.sizes import with_head_dim
from attnlab.tracer.cast import Given
from attnlab.training.log import TrainingLog
from attnlab.training.report import build_report

BRIEF = 1.0  # seconds in which parts are switched off, besides other looks


def find_parts(job: Job, host: Host) -> AblationReport:
    """What each part of the module does in the job's example, or in the demo of its file; besides
    properties only whether it does anything."""
    if job.contract is None:
        answer = host.ask("ablate_demo", **surroundings(job))
    else:
        answer = host.ask(
            "ablate_example",
            inputs=_built_example(job, host, job.contract),
            seconds=BRIEF if "check" in job.stages else 0.0,
        )
    try:
        return from_json(AblationReport, str(checked_answer(answer).get("report", ""))[:LONGEST])
    except (TypeError, ValueError) as error:
        raise Died("crashed", "answered with no parts") from error


def _built_example(job: Job, host: Host, contract: Contract) -> Given:
    """The inputs of the example, once its module is built."""
    sizes = with_head_dim(contract.sizes)
    build_example(job, host, contract, sizes)
    return list(draw.inputs(contract, sizes, Dice(SEED), contract.example_mask).items())


def find_properties(job: Job, host: Host) -> tuple[LiveReport, TrainingReport | None]:
    """What the job's example, or the demo of its file, shows of the module; and what became of one
    batch, where that was to be learned."""
    said: dict[str, Any] = {"promised": list(job.promised), "unpromised": list(job.unpromised)}
    said["overfit"] = job.overfit
    contract = job.contract
    if contract is None:
        answer = host.ask("look_at_demo", **surroundings(job), **said)
    else:
        inputs = _built_example(job, host, contract)
        answer = host.ask("look_at_properties", inputs=inputs, **said)
    told = checked_answer(answer)
    try:
        live = from_json(LiveReport, str(told.get("report", ""))[:LONGEST])
        log = from_json(TrainingLog, str(told["log"])[:LONGEST]) if "log" in told else None
    except (TypeError, ValueError) as error:
        raise Died("crashed", "answered with no properties") from error
    return live, build_report(log) if log is not None else None

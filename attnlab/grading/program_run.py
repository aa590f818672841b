"""Do the stages of a program's job: grade all parts, train once, reach the goals."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import Any

from torch import Tensor

from attnlab.candidate.host import Died, Raised, Spawn
from attnlab.grading.observations import accuracy_of, constant_answers, crash_text, loss_of
from attnlab.grading.program import ProgramGrader, Side, cheapest_first
from attnlab.grading.program_bugs import tell_bugs
from attnlab.probe.reference import ReferenceCache
from attnlab.records import GradeOutcome, Outcome, Trace, from_json
from attnlab.records.program import (
    BugResult,
    Goal,
    GoalResult,
    PartResult,
    ProgramJob,
    ProgramReport,
    TrainingRun,
)

LONGEST = 8 << 20  # characters of a trace
PATIENCE = 2  # times the right program's steps in which a goal has to be reached


def run_program(
    job: ProgramJob, spawn: Spawn, references: ReferenceCache, known: dict[str, Any]
) -> ProgramReport:
    """Do the stages of a job; `known` holds what right programs do from one job to the next."""
    started = time.monotonic()
    grader = ProgramGrader(job, spawn, references, known)
    report = ProgramReport(outcome="error", seed=job.seed)
    with ExitStack() as stack:
        stack.callback(grader.close)
        try:
            report = _do_stages(grader, report)
        except Raised as error:
            report = replace(report, outcome="crashed", message=crash_text(error))
        except Died as death:
            report = replace(report, outcome=death.reason, message=f"the program {death}")
        hosts = grader.hosts
        return replace(
            report,
            output="".join(host.printed for host in grader.my_hosts)[-2000:],
            isolation=hosts[0].isolation if hosts else (),
            missing=hosts[0].missing if hosts else (),
            seconds=time.monotonic() - started,
        )


def _do_stages(grader: ProgramGrader, report: ProgramReport) -> ProgramReport:
    job = grader.job
    if "measure" in job.stages:
        return measure_once(grader, report)
    if "train" in job.stages:
        report = train_once(grader, report)
    stage = grader.program.stage(job.open_stage)
    if "stage" in job.stages and stage:
        result = grader.grade_stage(stage)
        report = replace(report, stage=result, outcome="passed" if result.passed else "failed")
        if late := next((c for c in result.checks if c.reason == "timeout"), None):
            return replace(report, outcome="timeout", message=late.message)  # no time is left
    if "material" in job.stages:
        report = replace(report, notes=tuple(constant_answers(grader.right().observed)))
    if "grade" in job.stages:
        report = _grade(grader, report)
    if "goals" in job.stages and (report.passed or "grade" not in job.stages):
        goals = tuple(reach_goals(grader))
        missed = [goal for goal in goals if goal.outcome != "passed"]
        outcome: GradeOutcome = "failed" if missed else "passed"
        message = f"{missed[0].title}: {missed[0].message}" if missed else report.message
        report = replace(report, goals=goals, outcome=outcome, message=message)
    if "goals" in job.stages and report.outcome == "passed":
        return replace(report, bugs=tuple(BugResult(id=b, fixed=True) for b in grader.bugs))
    if "bugs" in job.stages and report.parts:
        report = replace(report, bugs=tell_bugs(grader))
    return report


def _grade(grader: ProgramGrader, report: ProgramReport) -> ProgramReport:
    if changed := _changed_constants(grader):
        return replace(report, outcome="failed", message=changed)
    parts = _first_failure(grader) if grader.job.first_failure else _all_parts(grader)
    wrong = sorted(
        (part for part in parts if part.outcome != "passed"),
        key=lambda part: (not part.reason, part.outcome != "failed"),
    )
    if not wrong:
        return replace(report, outcome="passed", parts=tuple(parts))
    first, message = wrong[0], wrong[0].message
    outcome: GradeOutcome = "failed" if first.outcome == "failed" else "cannot-compare"
    outcome = first.reason or outcome
    return replace(report, outcome=outcome, parts=tuple(parts), message=message)


def _all_parts(grader: ProgramGrader) -> list[PartResult]:
    """The units, then the entries. Where an entry is wrong, the round is rejected anyway, and
    units are looked at quickly, to tell what is to blame."""
    entries = list(grader.grade_entries())
    units = grader.grade_units(quick=any(part.outcome == "failed" for part in entries))
    units = grader.count_parameters(units)
    if any(unit.outcome != "passed" or unit.message for unit in units):
        entries = grader.blame_entries(entries)
    return [*units, *entries]


def _first_failure(grader: ProgramGrader) -> list[PartResult]:
    """The parts up to the first that is wrong, the cheapest ones first."""
    parts: list[PartResult] = []
    order = cheapest_first(grader.right().cases)
    for part in chain(grader.grade_entries(order), map(grader.grade_unit, grader.program.units)):
        parts.append(part)
        if part.outcome == "failed":
            return parts
    return grader.count_parameters(parts)


def _changed_constants(grader: ProgramGrader) -> str:
    """What to say where a declared constant has another value."""
    right = grader.right().constants
    grader.mine.ask("evaluate_expressions", expressions=[])
    for name, value in grader.mine.constants.items():
        if value != right[name]:
            return f"{name} is {value}, but was {right[name]} as given: put it back"
    return ""


# ---------------------------------------------------------------- one run


def measure_once(grader: ProgramGrader, report: ProgramReport) -> ProgramReport:
    """Train the candidate's program as its user would, and measure what may be asked for."""
    right, side = grader.right(), Side(grader, grader.job.files, exact=False, mine=True)
    steps = grader.job.steps or right.steps
    answer = side.ask("measure_training", seed=0, steps=steps)
    sample = side.ask("sample_text", expression=grader.program.training.sample)["text"]
    run = TrainingRun(
        steps=steps,
        losses=tuple(answer["losses"]),
        expected_start=math.log(right.classes),
        seconds=0.0,
        sample=sample,
        evidence=answer["evidence"],
    )
    return replace(report, outcome="passed", run=run)


def train_once(grader: ProgramGrader, report: ProgramReport) -> ProgramReport:
    """Train the candidate's program as its user would, and look at its goals."""
    right, side = grader.right(), Side(grader, grader.job.files, exact=False, mine=True)
    steps = grader.job.steps or right.steps
    answer = side.ask("train_model", seed=0, steps=steps)
    losses = answer.get("losses") or answer["backward_losses"]
    failed = next((n for n, loss in enumerate(losses, 1) if not math.isfinite(loss)), None)
    run = TrainingRun(
        steps=steps,
        losses=tuple(losses),
        expected_start=math.log(right.classes),
        seconds=answer["seconds"],
        failed_step=failed,
    )
    if ended := answer.get("ended"):
        failed = len(answer["backward_losses"]) + 1
        run = replace(run, failed_step=failed, error=crash_text(Raised(ended)))
        run = replace(run, trace=_trace_step(grader, steps, failed))
        return replace(report, outcome="crashed", message=run.error, run=run)
    if failed:
        run = replace(run, trace=_trace_step(grader, steps, failed))
    try:
        sample = side.ask("sample_text", expression=grader.program.training.sample)["text"]
        run = replace(run, sample=sample)
        goals = tuple(_goal_result(grader, side, goal) for goal in grader.program.goals)
    except Raised as raised:
        run = replace(run, error=crash_text(raised))
        return replace(report, outcome="crashed", message=run.error, run=run)
    reached = all(goal.outcome == "passed" for goal in goals)
    return replace(report, outcome="passed" if reached else "failed", run=run, goals=goals)


def _trace_step(grader: ProgramGrader, steps: int, step: int) -> Trace | None:
    """The step that failed, in a fresh process; None where it cannot be repeated."""
    side = Side(grader, grader.job.files, exact=False)
    try:
        text = side.ask("trace_training_step", seed=0, steps=steps, step=step)["trace"]
        return from_json(Trace, text[:LONGEST])
    except (Raised, Died, ValueError):
        return None


# ---------------------------------------------------------------- goals


def reach_goals(grader: ProgramGrader) -> Iterator[GoalResult]:
    """Train as long as the right program needs, and once more where that was not enough."""
    steps, goals = grader.right().steps, grader.program.goals
    side = Side(grader, grader.job.files, exact=False, mine=True)
    run = side.ask("train_model", seed=grader.job.seed, steps=steps)
    if ended := run.get("ended"):
        raise Raised({"verb": "train", **ended})
    if wrong := _eval_step(grader, run["modes"]):
        yield wrong
    results = [_goal_result(grader, side, goal) for goal in goals]
    for _ in range(1, PATIENCE):
        if all(result.outcome == "passed" for result in results):
            break
        side.ask("continue_training", steps=steps)
        results = [_goal_result(grader, side, goal) for goal in goals]
    yield from results


def _eval_step(grader: ProgramGrader, modes: Sequence[bool]) -> GoalResult | None:
    """A step in eval mode, late in training, where the right program drops values in all."""
    right = grader.right().observed["training"]["runs"][0]
    if all(modes) or not (right["dropout"] and all(right["modes"])):
        return None
    step = modes.index(False) * grader.right().steps // len(modes) + 1
    message = f"step {step} ran in eval mode, so that its dropout dropped nothing"
    title = "every training step runs in train mode"
    return GoalResult(id="train-mode", title=title, outcome="failed", message=message)


def _goal_result(grader: ProgramGrader, side: Side, goal: Goal) -> GoalResult:
    values = grader.right().values
    if goal.kind == "generate":
        expected, prompt = values[goal.expected], values[goal.prompt]
        count = goal.count or expected.shape[1] - prompt.shape[1]
        given = 0 if goal.count else prompt.numel()
        ids = side.ask("generate_ids", prompt=prompt, count=count)["output"]
        same = isinstance(ids, Tensor) and ids.shape == expected.shape
        equal = int((ids == expected).sum()) if same else 0
        reached = equal == expected.numel()
        message = f"{equal - given if same else 0} of {expected.numel() - given} ids"
    else:
        *inputs, targets = values[goal.batch]
        logits = side.ask("model_logits", inputs=inputs)["output"]
        value = loss_of(logits, targets) if goal.kind == "loss" else accuracy_of(logits, targets)
        reached = value < goal.bound if goal.kind == "loss" else value >= goal.bound
        needed = "below" if goal.kind == "loss" else "at least"
        message = f"{goal.kind} {value:.3f}, needed {needed} {goal.bound:g}"
    outcome: Outcome = "passed" if reached else "failed"
    return GoalResult(id=goal.id, title=goal.title, outcome=outcome, message=message)

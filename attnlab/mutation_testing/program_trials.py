"""Try mutants of a program, as `fork_pool` tries those of a file.

One that passes is compared with the right program by more than grading compares: other weights,
more steps and prompts, and its model's units at many sizes (`equivalence.py`). Where that differs,
it has to miss a goal.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from torch import Tensor

from attnlab.candidate.host import Raised
from attnlab.grading.observations import Cases, Extent, Observed, compare, crash_text, observe
from attnlab.grading.program import ProgramGrader, Side
from attnlab.grading.program_run import run_program
from attnlab.grading.program_sources import unit_code
from attnlab.mutation_testing import equivalence
from attnlab.mutation_testing.fork_pool import trial_report, try_in_forks
from attnlab.mutation_testing.in_process_host import spawn_in_process
from attnlab.mutation_testing.measure_program import grade_job
from attnlab.probe.reference import ReferenceCache
from attnlab.records import from_json, to_json
from attnlab.records.program import Files, Program, ProgramJob, ProgramReport, Unit
from attnlab.records.trial import ProgramTrialJob, ProgramTrialReport, TrialResult

SEEDS = (101, 102)  # of the weights that are compared; grading has others
EXTENT = Extent(runs=(6, 4), new_ids=7)
# What all grades use: references of units, and what the right program does, by seed.
SharedResults = tuple[ReferenceCache, dict[str, Any]]


@dataclass(frozen=True)
class RightBehaviour:
    """What the right program does with more weights and prompts than grading gives it."""

    program: Program
    weights: list[dict[str, Tensor]]
    cases: Cases
    observed: list[Observed]
    units: list[tuple[Unit, list[equivalence.Standard]]]


def try_programs(job: ProgramTrialJob) -> ProgramTrialReport:
    """Grade every candidate in turn; compare those that pass with the right program."""
    text = to_json(job.job.program)
    right = _right_behaviour(text) if job.compare else None
    shared = _shared_results(text, job.seeds[0])

    def try_number(number: int) -> str:
        return to_json(_try_program(job, job.candidates[number], right, shared))

    return trial_report(ProgramReport, try_in_forks(len(job.candidates), try_number, job.seconds))


def _try_program(
    job: ProgramTrialJob, files: Files, right: RightBehaviour | None, shared: SharedResults
) -> TrialResult[ProgramReport]:
    jobs = [replace(job.job, files=files, seed=seed) for seed in job.seeds]
    reports = [run_program(one, spawn_in_process, *shared) for one in jobs]
    if not right or all(report.outcome != "passed" for report in reports):
        return TrialResult(reports=tuple(reports))
    differs = difference(files, right)
    if differs:
        jobs = [replace(one, stages=(*one.stages, "goals")) for one in jobs]
        reports = [run_program(one, spawn_in_process, *shared) for one in jobs]
    return TrialResult(reports=tuple(reports), difference=differs)


@lru_cache(maxsize=2)  # two programs are checked at once
def _shared_results(text: str, seed: int) -> SharedResults:
    """What grading the right program leaves; the key is its JSON, which can be hashed."""
    program, shared = from_json(Program, text), (ReferenceCache(), dict[str, Any]())
    run_program(grade_job(program, program.files, seed), spawn_in_process, *shared)
    return shared


# ---------------------------------------------------------------- comparing


@lru_cache(maxsize=1)
def _right_behaviour(text: str) -> RightBehaviour:
    """Worked out once for all mutants of a program."""
    program = from_json(Program, text)
    weights: list[dict[str, Tensor]] = []
    cases: Cases = {}
    for seed in SEEDS:
        job = ProgramJob(
            program=program, files=program.files, label=program.name, stages=(), seed=seed
        )
        right = ProgramGrader(job, spawn_in_process, ReferenceCache(), {}).right()
        weights.append(right.weights)
        cases = right.cases
    if prompts := cases.get("generation"):
        more = [part for ids in prompts for part in (ids, ids[:1], ids[:, :1], ids.flip(1))]
        cases = {**cases, "generation": more}
    side = _side(program, program.files)
    observed = [observe(side, w, cases, EXTENT) for w in weights]
    return RightBehaviour(
        program=program,
        weights=weights,
        cases=cases,
        observed=observed,
        units=[(unit, _unit_standards(program, unit)) for unit in program.units],
    )


def _unit_standards(program: Program, unit: Unit) -> list[equivalence.Standard]:
    """What the right program and its styles have in common in a unit."""
    codes = [unit_code(unit, files, "") for files in (program.files, *program.styles.values())]
    return equivalence.standard(codes, unit.contract, seed=0)


def _side(program: Program, files: Files) -> Side:
    own = replace(program.training, settings={}, loose={})  # no constants of the grader's
    program = replace(program, training=own)
    job = ProgramJob(program=program, files=files, label=program.name, stages=())
    grader = ProgramGrader(job, spawn_in_process, ReferenceCache(), {})
    return Side(grader, files)


def difference(files: Files, right: RightBehaviour) -> str:
    """How a program differs from the right one, in one sentence; "" where it does the same."""
    try:
        return next(_differences(files, right), "")
    except Raised as error:
        return f"it raises {crash_text(error)}"


def _differences(files: Files, right: RightBehaviour) -> Iterator[str]:
    side = _side(right.program, files)
    for weights, wanted in zip(right.weights, right.observed, strict=True):
        seen = observe(side, weights, right.cases, EXTENT)
        for part in wanted:
            if text := compare(part, seen, wanted, dict):
                yield f"{part}: {text}"
    for unit, standards in right.units:
        if text := equivalence.difference(unit_code(unit, files, ""), standards):
            yield f"{unit.id}: {text}"

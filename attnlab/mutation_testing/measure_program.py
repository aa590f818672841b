"""How strong is the grader on a whole program? It must reject every bug and pass every right one.

The bugs are those that the program ships, each alone, and the mutants that `operators/` makes of
its files. As with modules (`measure.py`), a mutant that passes has survived only if it is seen to
differ; it is then graded once more as `attnlab grade` does it.
"""

import ast
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from attnlab.catalogue.programs import compose
from attnlab.catalogue.validate_program import ProgramCase, program_cases
from attnlab.errors import AttnlabError
from attnlab.mutation_testing.measure import (
    ALL,
    CHUNK,
    SHIPPED,
    Strength,
    is_drawn,
    make_trial,
    settle,
)
from attnlab.mutation_testing.operators.base import Mutant, mutants
from attnlab.records import Limits, record
from attnlab.records.program import Files, Program, ProgramJob, ProgramReport
from attnlab.records.trial import ProgramTrialJob, ProgramTrialReport, ProgramTrialResult, Trial

LIMITS = Limits(seconds=60.0)


class ProgramRunner(Protocol):
    """Runs programs: a worker, or a pool of them."""

    def run_program(self, job: ProgramJob) -> ProgramReport: ...

    def program_trials(self, job: ProgramTrialJob) -> ProgramTrialReport: ...


@record
class ProgramMutant:
    """Files that must be rejected."""

    file: str  # the one that was changed
    files: Files
    mutant: Mutant


def measure_program(
    program: Program,
    runner: ProgramRunner,
    seeds: Sequence[int],
    pool: Executor,
    percent: int = ALL,
) -> Strength:
    """Grade every right version and bug of a program under each seed, and this share of mutants."""
    grader = ProgramJudge(program, runner, tuple(seeds))
    rights = [case for case in program_cases(program) if not case.wrong]
    to_reject = list(program_mutants(program, percent))
    chunks = [to_reject[first : first + CHUNK] for first in range(0, len(to_reject), CHUNK)]
    grades = [pool.submit(grader.rejections, case) for case in rights]
    futures = [pool.submit(grader.try_mutants, chunk) for chunk in chunks]
    trials = tuple(trial for future in futures for trial in future.result())
    wrongs = [reason for future in grades for reason in future.result()]
    wrongs += [f"{t.base}:{t.line}: {t.reason}" for t in trials if t.reason.startswith("error")]
    return Strength(slug=program.slug, right=len(rights), trials=trials, wrongs=tuple(wrongs))


def program_mutants(program: Program, percent: int = ALL) -> Iterator[ProgramMutant]:
    """The bugs it ships, then a share of the generated ones, the same each time."""
    for bug in program.bugs:
        mutant = Mutant(mutation=SHIPPED, line=1, before="", after=bug.id, text="")
        yield ProgramMutant(file=bug.edits[0].file, files=compose(program, [bug.id]), mutant=mutant)
    for file in program.edit:
        unused = _unused_lines(program, file)
        for mutant in mutants(program.files[file]):
            if mutant.line not in unused and is_drawn(mutant, percent):
                files = program.files | {file: mutant.text}
                yield ProgramMutant(file=file, files=files, mutant=mutant)


def _unused_lines(program: Program, file: str) -> set[int]:
    """The lines of functions that nothing but `if __name__ == "__main__"` calls."""
    module = file.removesuffix(".py")
    declared = set(program.training.entries.values())
    tree = ast.parse(program.files[file])
    used = {
        node.id
        for part in tree.body
        if not isinstance(part, ast.If)
        for node in ast.walk(part)
        if isinstance(node, ast.Name)
    }
    unused: set[int] = set()
    for part in tree.body:
        if isinstance(part, ast.FunctionDef) and part.name not in used:
            others = (text for name, text in program.files.items() if name != file)
            elsewhere = any(part.name in text for text in others)
            if f"{module}.{part.name}" not in declared and not elsewhere:
                unused |= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    return unused


@dataclass(frozen=True)
class ProgramJudge:
    """Grades versions of one program."""

    program: Program
    runner: ProgramRunner
    seeds: tuple[int, ...]

    def try_mutants(self, chunk: list[ProgramMutant]) -> list[Trial]:
        """What became of each. One that ends the worker is tried again alone."""
        job = ProgramTrialJob(
            program=self.program, candidates=tuple(one.files for one in chunk), seeds=self.seeds
        )
        try:
            results = self.runner.program_trials(job).results
        except AttnlabError as error:
            if len(chunk) > 1:
                return [trial for one in chunk for trial in self.try_mutants([one])]
            return [
                make_trial(chunk[0].file, chunk[0].mutant, "survived", f"error: {error.message}")
            ]
        return [self._trial(one, result) for one, result in zip(chunk, results, strict=True)]

    def _trial(self, one: ProgramMutant, result: ProgramTrialResult) -> Trial:
        """A mutant that would survive is graded again in processes of its own."""
        reasons = [_rejection(report) for report in result.reports]
        if result.difference and not any(reasons):
            reasons = [self._grade(one.files, seed, goals=True) for seed in self.seeds]
        return settle(one.file, one.mutant, reasons, result.difference)

    def rejections(self, case: ProgramCase) -> list[str]:
        """Each seed under which a right version is rejected, with the reason."""
        reasons = {seed: self._grade(case.files, case.seed + seed) for seed in self.seeds}
        return [f"{case.name}: {text} (seed {s})" for s, text in reasons.items() if text]

    def _grade(self, files: Files, seed: int, goals: bool = False) -> str:
        """Why `attnlab grade` rejects files; "" where they pass."""
        job = ProgramJob(
            program=self.program,
            files=files,
            label=self.program.name,
            stages=("grade", "goals") if goals else ("grade",),
            seed=seed,
            limits=LIMITS,
            first_failure=True,
        )
        try:
            return _rejection(self.runner.run_program(job))
        except AttnlabError as error:
            return f"error: {error.message}"


def _rejection(report: ProgramReport) -> str:
    """The part or goal that rejects a program; "" where it passes."""
    if report.outcome == "passed":
        return ""
    failed = [(part.id, part.message) for part in report.parts if part.outcome != "passed"]
    failed += [(goal.id, goal.message) for goal in report.goals if goal.outcome != "passed"]
    where, message = failed[0] if failed else (report.outcome, report.message)
    return f"{where}: {message}"

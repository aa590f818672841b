"""Grade the right versions and the bugs of a whole program; each shipped bug is tried alone."""

import ast
from collections.abc import Iterator, Sequence

from attnlab.catalogue.programs import compose
from attnlab.catalogue.validate_program import program_cases
from attnlab.mutation_testing.measure import SHIPPED, Bug, Right, Runner, VersionGrader
from attnlab.mutation_testing.operators.base import Mutant, mutants
from attnlab.records import Limits
from attnlab.records.program import Files, Program, ProgramJob, ProgramReport
from attnlab.records.trial import ProgramTrialJob, TrialResult

LIMITS = Limits(seconds=60.0)


class ProgramVersionGrader(VersionGrader[Files, ProgramReport]):
    """Grades versions of one program."""

    def __init__(self, program: Program, runner: Runner, seeds: Sequence[int]) -> None:
        self.program, self.runner, self.seeds = program, runner, tuple(seeds)
        self.slug = program.slug

    def rights(self) -> list[Right[Files]]:
        """The program, its styles, decoys and other fixes."""
        cases = (case for case in program_cases(self.program) if not case.wrong)
        return [Right(case.name, case.files, case.seed) for case in cases]

    def bugs(self) -> Iterator[Bug[Files]]:
        return program_bugs(self.program)

    def grade(self, version: Files, seed: int, *, passed: bool) -> ProgramReport:
        return self.runner.run_program(grade_job(self.program, version, seed, goals=passed))

    def try_all(self, versions: tuple[Files, ...]) -> Sequence[TrialResult[ProgramReport]]:
        one = grade_job(self.program, self.program.files, self.seeds[0])
        job = ProgramTrialJob(job=one, candidates=versions, seeds=self.seeds)
        return self.runner.program_trials(job).results

    def reason(self, file: str, report: ProgramReport) -> str:  # noqa: ARG002
        """The part or goal that rejects a program; "" where it passes."""
        if report.outcome == "passed":
            return ""
        failed = [(part.id, part.message) for part in report.parts if part.outcome != "passed"]
        failed += [(goal.id, goal.message) for goal in report.goals if goal.outcome != "passed"]
        where, message = failed[0] if failed else (report.outcome, report.message)
        return f"{where}: {message}"


def grade_job(program: Program, files: Files, seed: int, *, goals: bool = False) -> ProgramJob:
    """To grade a version of a program up to its first failure."""
    return ProgramJob(
        program=program,
        files=files,
        label=program.name,
        stages=("grade", "goals") if goals else ("grade",),
        seed=seed,
        limits=LIMITS,
        first_failure=True,
    )


def program_bugs(program: Program) -> Iterator[Bug[Files]]:
    """The bugs it ships, then generated mutants."""
    for bug in program.bugs:
        mutant = Mutant(mutation=SHIPPED, line=1, before="", after=bug.id, text="")
        yield Bug(bug.edits[0].file, compose(program, [bug.id]), mutant)
    for file in program.edit:
        unused = _unused_lines(program, file)
        for mutant in mutants(program.files[file]):
            if mutant.line not in unused:
                yield Bug(file, program.files | {file: mutant.text}, mutant)


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

"""Validate a program: right files reach its goals, every choice of bugs is rejected, as it claims.

The right program and its styles pass with their goals, other fixes and decoys pass, each bug alone
is seen by what it claims, and all pairs of bugs and some rounds are rejected. The bugs of the round
that `start` gives are told with its decoys in, and the right program does not say the same of all
that it is asked. Of a stage, the solution and its styles pass, slips and the untouched program are
rejected. The caller grades: many cases in one process, and those that need one of their own.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

from attnlab.catalogue.patches import apply_edits
from attnlab.catalogue.programs import compose, draw_bugs
from attnlab.catalogue.validate import REJECTED, Validation, make_validation, quotes_fix
from attnlab.records import record
from attnlab.records.patch import Edit
from attnlab.records.program import Files, Program, ProgramBug, ProgramReport, Stage

SEEDS = 3  # under which the right program reaches its goals
CHUNK = 40  # cases that end at their first failure and are tried together
TOGETHER = 8  # other fixes that are made at once: if one is wrong, each of them is graded alone
LONG_CHUNK = 12  # of cases that are graded to their end
ROUNDS = 15  # that are drawn: as they are given, and with one bug fixed
BUGS, DECOYS, FIXES = 12, 2, 2  # that a program has at least; other fixes of a bug of its loop
SLIPS, STYLES = 5, 2  # that a stage has at least
# As they are counted.
GROUPS = (("bug", "several", "round", "slip"), ("right",), ("style", "fix", "stage"), ("decoy",))
Role = Literal["right", "style", "decoy", "fix", "bug", "several", "round", "stage", "slip"]


@record
class ProgramCase:
    """Files of a program that must pass, or be rejected."""

    role: Role
    name: str
    files: Files
    seed: int = 0
    goals: bool = False  # whether they must be reached as well
    seen_by: tuple[str, ...] = ()  # parts, goals or checks of the stage that must fail
    stage: str = ""  # that is open
    bugs: tuple[str, ...] = ()  # that have to be told as not fixed; decoys may be among them
    edits: tuple[Edit, ...] = ()  # of the right files, after which they are still right

    @property
    def wrong(self) -> bool:
        return self.role in ("bug", "several", "round", "slip")

    @property
    def needs_process(self) -> bool:
        """Whether its programs must not share one with others: it trains as its user would, or
        compares several programs that import each other's modules by name."""
        return self.goals or bool(self.stage or self.bugs)

    @property
    def to_first_failure(self) -> bool:
        """Whether a grade tells enough that ends at the first part that fails."""
        return not (self.seen_by or self.bugs)


Grade = Callable[[Program, ProgramCase], ProgramReport]
# All in one process; None, or none at all, where a process of its own has to tell.
TryMany = Callable[[Program, Sequence[ProgramCase]], Sequence[ProgramReport | None]]
Group = tuple[ProgramCase, list[int]]  # what is graded, for the cases of these numbers


def validate_program(program: Program, grade: Grade, try_many: TryMany | None = None) -> Validation:
    """Grade every case of a program; the validation has a row like that of a challenge.

    Those that need no process of their own are given to `try_many`, fixes of different places as
    one. What comes out there as it should is not graded again.
    """
    cases = list(program_cases(program))

    def problem(number: int) -> str:
        return case_problem(cases[number], grade(program, cases[number]))

    def numbers_as_they_should_be(chunk: Sequence[Group]) -> set[int]:
        reports = try_many(program, [case for case, _ in chunk]) if try_many else []
        answers = zip(chunk, reports, strict=False)
        fine = [many for (c, many), report in answers if report and not case_problem(c, report)]
        return {number for many in fine for number in many}

    chunks = _chunks(program, cases) if try_many else []
    good = set[int]().union(*map(numbers_as_they_should_be, chunks))
    files = [(c.role, "" if n in good else problem(n)) for n, c in enumerate(cases)]
    return make_validation(program.slug, files, GROUPS, list(text_problems(program)))


def _chunks(program: Program, cases: Sequence[ProgramCase]) -> list[Sequence[Group]]:
    """Cases that are tried in one process, alike in what is asked of them."""
    groups = list(_groups(program, cases))
    short = [group for group in groups if group[0].to_first_failure]
    long = [group for group in groups if not group[0].to_first_failure]
    return [*_cut(long, LONG_CHUNK), *_cut(short, CHUNK)]


def _cut(groups: Sequence[Group], size: int) -> list[Sequence[Group]]:
    return [groups[first : first + size] for first in range(0, len(groups), size)]


def _groups(program: Program, cases: Sequence[ProgramCase]) -> Iterator[Group]:
    """Each case with its number; fixes at different places are one case together."""
    together: list[list[int]] = []
    for number, case in enumerate(cases):
        if case.edits:
            apart = (group for group in together if _can_join(case, [cases[n] for n in group]))
            if (group := next(apart, None)) is None:
                together.append(group := [])
            group.append(number)
        elif not case.needs_process:
            yield case, [number]
    for group in together:
        files = apply_edits(program.files, [e for number in group for e in cases[number].edits])
        yield replace(cases[group[0]], files=files), group


def _can_join(case: ProgramCase, others: Sequence[ProgramCase]) -> bool:
    taken = [edit for other in others for edit in other.edits]
    apart = not any(edit.overlaps(other) for edit in case.edits for other in taken)
    return apart and len(others) < TOGETHER


def program_cases(program: Program) -> Iterator[ProgramCase]:
    """Everything that is graded, the right program first."""
    goal_ids = {goal.id for goal in program.goals}
    for seed in range(SEEDS):
        yield ProgramCase(role="right", name="base", files=program.files, seed=seed, goals=True)
    for name, files in program.styles.items():
        yield ProgramCase(role="style", name=f"styles/{name}", files=files, goals=True)
    for patch in program.decoys:
        yield ProgramCase(role="decoy", name=patch.id, files=compose(program, [patch.id]))
    for bug in program.bugs:
        for number, edits in enumerate(bug.fixes, 1):
            files = apply_edits(program.files, edits)
            name = f"{bug.id}, fix {number}"
            yield ProgramCase(role="fix", name=name, files=files, edits=edits)
    for bug in program.bugs:
        files, seers = compose(program, [bug.id]), bug.seen_by
        goals = bool(goal_ids & set(seers))
        yield ProgramCase(role="bug", name=bug.id, files=files, seen_by=seers, goals=goals)
    for several in _choices(program):
        name, files = " + ".join(several), compose(program, several)
        yield ProgramCase(role="several", name=name, files=files)
    files, chosen = compose(program, program.chosen), program.chosen
    yield ProgramCase(role="round", name="the round", files=files, bugs=chosen)
    for stage in program.stages:
        yield from _stage_cases(program, stage)


def _stage_cases(program: Program, stage: Stage) -> Iterator[ProgramCase]:
    for name, files in {"solution": stage.solution, **stage.styles}.items():
        yield ProgramCase(role="stage", name=f"{stage.id}, {name}", files=files, stage=stage.id)
    untouched = program.files | stage.given
    yield ProgramCase(role="slip", name=f"{stage.id}, untouched", files=untouched, stage=stage.id)
    for slip in stage.slips:
        yield ProgramCase(
            role="slip",
            name=f"{stage.id}, {slip.id}",
            files=apply_edits(stage.solution, slip.edits),
            seen_by=slip.seen_by,
            stage=stage.id,
        )


def _choices(program: Program) -> list[tuple[str, ...]]:
    """All pairs of bugs at different places, and some rounds, also with one bug fixed."""
    pairs = [(a.id, b.id) for a, b in combinations(program.bugs, 2) if not a.overlaps(b)]
    dice = random.Random(program.slug)
    rounds = {draw_bugs(program, dice.getrandbits(31)) for _ in range(ROUNDS)}
    bugs = {bug.id for bug in program.bugs}
    fixed = {
        tuple(patch for patch in one if patch != gone)
        for one in sorted(rounds)
        for gone in (dice.choice(sorted(bugs & set(one))),)
    }
    several = {one for one in rounds | fixed if len(bugs & set(one)) > len("ab")}
    return [*pairs, *sorted(several)]


def case_problem(case: ProgramCase, report: ProgramReport) -> str:
    """Why a case was not graded as it should be, in one line; "" when it was."""
    if not case.wrong:
        if report.passed:
            return "; ".join(f"{case.name}: {note}" for note in report.notes)
        part = next((p for p in report.parts if p.outcome != "passed"), None)
        first = part or (report.stage.failed if report.stage else None)
        why = f"{first.id}: {first.message}" if first else report.message
        return f"{case.name}: must pass, came out {report.outcome} ({why})"
    if report.outcome not in REJECTED:
        return f"{case.name}: must be rejected, came out {report.outcome}"
    if untold := [bug.id for bug in report.bugs if bug.fixed is not False]:
        names = ", ".join(untold)
        return f"{case.name}: not told as still there: {names}; a decoy may change what a bug does"
    failed = {part.id for part in report.parts if part.outcome == "failed"}
    failed |= {goal.id for goal in report.goals if goal.outcome == "failed"}
    failed |= {c.id for c in (report.stage.checks if report.stage else ()) if c.outcome == "failed"}
    missing = [seer for seer in case.seen_by if seer not in failed]
    if missing and (report.parts or report.stage):
        seen = ", ".join(sorted(failed)) or "none"
        return f"{case.name}: {', '.join(missing)} must fail, those that failed are {seen}"
    return ""


def text_problems(program: Program) -> Iterator[str]:
    """What is missing, or gives something away: too little material, a hint that quotes the fix."""
    for count, least, what in (
        (len(program.bugs), BUGS, "bugs"),
        (len(program.decoys), DECOYS, "decoys"),
        (len(program.styles), 1, "styles"),
    ):
        if count < least:
            yield f"it has {count} {what}, at least {least} are needed"
    loop = program.training.files
    for bug in program.bugs:
        if any(edit.file in loop for edit in bug.edits) and len(bug.fixes) < FIXES:
            yield f"bugs/{bug.id}.toml: {len(bug.fixes)} other fixes, at least {FIXES} are needed"
        yield from _spoiled(bug)
    for stage in program.stages:
        yield from _stage_problems(program, stage)


def _stage_problems(program: Program, stage: Stage) -> Iterator[str]:
    place = f"stages/{stage.id}"
    for count, least, what in (
        (len(stage.slips), SLIPS, "wrong ones"),
        (len(stage.styles), STYLES, "styles"),
    ):
        if count < least:
            yield f"{place}: it has {count} {what}, at least {least} are needed"
    for text in (stage.task, *stage.hints):
        for file in program.edit:
            if quoted := quotes_fix(text, program.files[file], stage.solution[file]):
                yield f"{place}: its task or a hint quotes the solution: {quoted}"


def _spoiled(bug: ProgramBug) -> Iterator[str]:
    for number, hint in enumerate(bug.hints, 1):
        for edit in bug.edits:
            if quoted := quotes_fix(hint, edit.new, edit.old):
                yield f"bugs/{bug.id}.toml: hint {number} quotes the fix: {quoted}"

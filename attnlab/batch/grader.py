"""Make the job of each submission, and its verdict of the report: all that tells a challenge of
one file from a round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from attnlab.batch.normal import normal_digest
from attnlab.batch.submissions import digest_submission, link_problem, printable
from attnlab.catalogue.load import Catalogue
from attnlab.catalogue.programs import compose
from attnlab.catalogue.round_mark import MARK
from attnlab.catalogue.texts import shipped_text, solution_text
from attnlab.errors import AttnlabError, Unreadable
from attnlab.files import shown_path
from attnlab.records import Challenge, CheckResult, Job, Limits, Report, Verdict
from attnlab.records.batch import BatchRun, Graded, Submission
from attnlab.records.program import GoalResult, PartResult, Program, ProgramJob, ProgramReport
from attnlab.target.challenge_job import challenge_job
from attnlab.target.rounds import GRADE, SECONDS, read_files, round_job, started_round
from attnlab.target.source import read_source
from attnlab.verdict import UNSEEN, grade_outcome, make_verdict

AnyJob = Job | ProgramJob
AnyReport = Report | ProgramReport
OUTPUT = 2000  # characters of what a submission printed that are kept


@dataclass(frozen=True)
class Task:
    """A submission that is to be graded; without a job its verdict is known already."""

    submission: Submission
    digest: str
    alike: str
    job: AnyJob | None
    problem: str = ""


class Grader(Protocol):
    """Grades what was handed in for one challenge."""

    slug: str
    folder: str  # of the challenge
    file: str  # that it asks for
    usual_seconds: float  # for a submission, where nothing else is asked for

    def files(self) -> Sequence[str]:
        """Those of a round; none where one file is handed in."""

    def known(self) -> dict[str, str]:
        """The digits of `shipped` and `solution`, as `Graded.alike` gives them."""

    def task(self, submission: Submission, run: BatchRun) -> Task: ...

    def verdict(self, task: Task, report: AnyReport) -> Verdict: ...


class ChallengeGrader:
    """Submissions are files."""

    usual_seconds = Limits().seconds

    def __init__(self, challenge: Challenge) -> None:
        self.challenge = challenge
        self.slug, self.folder = challenge.slug, challenge.folder
        self.file = f"{challenge.name}.py"

    def files(self) -> Sequence[str]:
        return ()

    def known(self) -> dict[str, str]:
        texts = shipped_text(self.challenge), solution_text(self.challenge)
        return dict(zip(("shipped", "solution"), (normal_digest([t]) for t in texts), strict=True))

    def task(self, submission: Submission, run: BatchRun) -> Task:
        digest = digest_submission(submission, ())
        file = shown_file(submission)
        try:
            if submission.problem:
                raise Unreadable(submission.problem)
            code = read_source(Path(submission.path), file)
            job = challenge_job(
                self.challenge, code, stages=("check",), limits=run.limits, seed=run.seed
            )
        except AttnlabError as error:
            return Task(submission, digest, "", None, error.message)
        job = replace(job, until="end" if self.challenge.bugs else "reason")
        return Task(submission, digest, normal_digest([code.text]), job)

    def verdict(self, task: Task, report: AnyReport) -> Verdict:
        assert isinstance(report, Report)
        return make_verdict(self.challenge, shown_file(task.submission), report)


class RoundGrader:
    """Submissions are folders; parts and goals stand for checks."""

    usual_seconds = SECONDS

    def __init__(self, program: Program) -> None:
        self.program = program
        self.slug, self.folder, self.file = program.slug, program.folder, program.name

    def files(self) -> Sequence[str]:
        return self.program.edit

    def known(self) -> dict[str, str]:
        program = self.program
        rounds = {"shipped": compose(program, program.chosen), "solution": program.files}
        edit = program.edit
        return {name: normal_digest([r[file] for file in edit]) for name, r in rounds.items()}

    def task(self, submission: Submission, run: BatchRun) -> Task:
        digest = digest_submission(submission, self.program.edit)
        path = submission.path
        parts = (Path(path, file) for file in (MARK, *self.program.edit))
        links = (link_problem(part, Path(path)) for part in parts)
        try:
            if problem := submission.problem or next(filter(None, links), ""):
                raise Unreadable(problem)
            chosen = started_round(self.program, Path(path))
        except AttnlabError as error:
            return Task(submission, digest, "", None, printable(error.message))
        job = round_job(chosen, GRADE, run.limits, run.seed)
        texts = read_files(self.program, Path(path)).values()
        return Task(
            submission, digest, normal_digest(texts), replace(job, label=shown_file(submission))
        )

    def verdict(self, task: Task, report: AnyReport) -> Verdict:
        assert isinstance(report, ProgramReport)
        return round_verdict(self.slug, f"{shown_file(task.submission)}/", report)


def find_grader(catalogue: Catalogue, what: str) -> Grader:
    """The grader of a challenge or program; raises `Refused` where nothing is called so."""
    from attnlab.catalogue.programs import read_program

    if entry := catalogue.find_program(what):
        return RoundGrader(read_program(Path(entry.folder)))
    return ChallengeGrader(catalogue.find(what))


def round_verdict(slug: str, file: str, report: ProgramReport) -> Verdict:
    """The verdict on a round that has ended: each part and goal stands for a check."""
    results: tuple[PartResult | GoalResult, ...] = (*report.parts, *report.goals)
    checks = [
        CheckResult(id=each.id, title=each.title, outcome=each.outcome, message=each.message)
        for each in results
    ]
    outcome = grade_outcome(report)
    bad = next((c for c in checks if c.outcome in ("failed", "error")), None)
    said = report.message or (f"{bad.id}: {bad.message or bad.title}" if bad else "")
    return Verdict(
        challenge=slug,
        file=file,
        outcome=outcome,
        score=report.score,
        checks=tuple(checks),
        isolation=report.isolation,
        seconds=report.seconds,
        message=f"{outcome}: {said or f'{report.parts_right} of {len(report.parts)} parts right'}",
        seed=report.seed,
        output=report.output,
    )


def shown_file(submission: Submission) -> str:
    """What was handed in, as messages show it."""
    return printable(shown_path(Path(submission.path)))


def conclude(grader: Grader, task: Task, report: AnyReport | None, fault: str = "") -> Graded:
    """The verdict on a task; `fault` says why attnlab itself has no report."""
    if report is not None:
        verdict = grader.verdict(task, report)
    else:
        verdict = Verdict(
            challenge=grader.slug,
            file=shown_file(task.submission),
            outcome="error" if fault else "unreadable",
            score=0.0,
            checks=(),
            message=fault or task.problem,
        )
    checks = verdict.checks
    told = tuple(check for check in checks if check.outcome in ("failed", "error"))
    return Graded(
        name=task.submission.name,
        digest=task.digest,
        alike=task.alike,
        verdict=replace(verdict, checks=told, output=verdict.output[-OUTPUT:]),
        passed=sum(check.outcome == "passed" for check in checks),
        least=any(check.reason == UNSEEN for check in checks),
    )

"""How strong is the grader? It is graded with bugs: every mutant rejected, every right file passed.

The bugs are the mutants that a challenge ships, and those that `operators/` makes of its solution
and of every alternative. A mutant that passes is not yet a fault of the grader: it may
do the same as its base. That is looked at apart from all checks, and only a mutant that was seen to
do something else has survived.

Right files and survivors are graded exactly as `attnlab grade` does it; the many that are rejected
by the same pipeline, but without a locked-in process for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from attnlab.errors import AttnlabError
from attnlab.mutation_testing.operators.base import Mutant, mutants
from attnlab.records import Challenge, Code, Job, Limits, Report, record
from attnlab.records.trial import Fate, Trial, TrialJob, TrialReport, TrialResult
from attnlab.target.resolve import challenge_job
from attnlab.target.source import read_source
from attnlab.verdict import make_verdict

SHIPPED = "shipped"  # in place of the mutation of a mutant that a person wrote
LIMITS = Limits(seconds=20.0)
CHUNK = 20  # mutants that are tried in one go


class JobRunner(Protocol):
    """Runs jobs: a worker, or a pool of them."""

    def run_job(self, job: Job) -> Report: ...

    def trials(self, job: TrialJob) -> TrialReport: ...


@record
class Bug:
    """A file that should be rejected."""

    base: str
    code: Code
    mutant: Mutant


@record
class Measured:
    """What was measured of one challenge."""

    slug: str
    right: int  # solution and alternatives
    trials: tuple[Trial, ...]
    wrongs: tuple[str, ...]  # right files that were rejected, and faults of our own

    def count(self, fate: Fate) -> int:
        return sum(t.fate == fate for t in self.trials)

    @property
    def shipped(self) -> int:
        return sum(t.mutation == SHIPPED for t in self.trials)

    @property
    def flips(self) -> int:
        return sum(t.flips for t in self.trials)

    @property
    def got_past(self) -> tuple[Trial, ...]:
        """The bugs that survived, or were seen under some seeds alone."""
        return tuple(t for t in self.trials if t.fate == "survived" or t.flips)

    @property
    def good(self) -> bool:
        return not (self.wrongs or self.flips or self.count("survived"))


def measure(
    challenge: Challenge, runner: JobRunner, seeds: Sequence[int], pool: Executor
) -> Measured:
    """Grades every right file and every bug of a challenge, under each seed."""
    rights = [_code(challenge, path) for path in (challenge.solution, *challenge.alternatives)]
    job = challenge_job(challenge, Path(challenge.solution), stages=("check",), limits=LIMITS)
    job = replace(job, candidate=rights[0], until="verdict")
    asked = TrialJob(job=job, right=tuple(rights[1:]), candidates=(), seeds=tuple(seeds))

    def chunk(some: list[Bug]) -> list[Trial]:
        return _trials(challenge, runner, asked, some)

    checked = [pool.submit(_rejections, challenge, runner, asked, code) for code in rights]
    found = [pool.submit(chunk, some) for some in _chunks(list(bugs(challenge)))]
    trials = tuple(trial for future in found for trial in future.result())
    wrongs = [text for future in checked for text in future.result()]
    wrongs += [f"{t.base}:{t.line}: {t.reason}" for t in trials if t.reason.startswith("error")]
    return Measured(slug=challenge.slug, right=len(rights), trials=trials, wrongs=tuple(wrongs))


def bugs(challenge: Challenge) -> Iterator[Bug]:
    """Shipped mutants, then generated ones; the same change of the same line is tried once."""
    for path in challenge.mutants:
        code = _code(challenge, path)
        says = code.text.strip('" \n').partition("\n")[0].strip('" ')
        mutant = Mutant(mutation=SHIPPED, line=1, before="", after=says, text=code.text)
        yield Bug(base=code.file, code=code, mutant=mutant)
    seen: set[tuple[str, str, str]] = set()
    for path in (challenge.solution, *challenge.alternatives):
        code = _code(challenge, path)
        for mutant in mutants(code.text):
            change = (mutant.mutation, mutant.before, mutant.after)
            if change not in seen:
                seen.add(change)
                yield Bug(base=code.file, code=replace(code, text=mutant.text), mutant=mutant)


# ---------------------------------------------------------------- some files


def _trials(
    challenge: Challenge, runner: JobRunner, asked: TrialJob, some: list[Bug]
) -> list[Trial]:
    candidates = tuple(bug.code for bug in some)
    try:
        found = runner.trials(replace(asked, candidates=candidates)).results
    except AttnlabError as error:
        if len(some) > 1:  # one of them takes down whoever tries it
            return [trial for bug in some for trial in _trials(challenge, runner, asked, [bug])]
        return [_graded(challenge, runner, asked, some[0], error)]
    return [
        _trial_of(challenge, runner, asked, bug, tried)
        for bug, tried in zip(some, found, strict=True)
    ]


def _graded(
    challenge: Challenge, runner: JobRunner, asked: TrialJob, bug: Bug, error: AttnlabError
) -> Trial:
    """What could not be compared is graded: what passes counts as a bug that got past."""
    whys = [_rejection_of(challenge, runner, asked, bug.code, seed) for seed in asked.seeds]
    if all(why and not why.startswith("error") for why in whys):
        return _trial(bug, "killed", whys[0])
    return _trial(bug, "survived", f"error: {error.message}")


def _trial_of(
    challenge: Challenge, runner: JobRunner, asked: TrialJob, bug: Bug, tried: TrialResult
) -> Trial:
    """A survivor is graded once more, in a process of its own."""
    verdicts = [_verdict(challenge, bug.code, report) for report in tried.reports]
    rejected = [why for why in verdicts if why]
    if tried.difference and not rejected:
        again = [_rejection_of(challenge, runner, asked, bug.code, seed) for seed in asked.seeds]
        rejected = [why for why in again if why]
        verdicts = again
    flips = len({bool(why) for why in verdicts}) > 1
    if len(rejected) == len(verdicts):
        return _trial(bug, "killed", rejected[0])
    if tried.difference:
        return _trial(bug, "survived", tried.difference, flips=flips)
    return _trial(bug, "equivalent", rejected[0] if rejected else "", flips=flips)


def _trial(bug: Bug, fate: Fate, reason: str, flips: bool = False) -> Trial:
    mutant = bug.mutant
    return Trial(
        base=bug.base,
        mutation=mutant.mutation,
        line=mutant.line,
        before=mutant.before,
        after=mutant.after,
        fate=fate,
        reason=reason,
        flips=flips,
    )


def _rejections(challenge: Challenge, runner: JobRunner, asked: TrialJob, code: Code) -> list[str]:
    """One line for each seed under which a right file does not pass."""
    whys = [(seed, _rejection_of(challenge, runner, asked, code, seed)) for seed in asked.seeds]
    return [f"{code.file}: {why} (seed {seed})" for seed, why in whys if why]


def _rejection_of(
    challenge: Challenge, runner: JobRunner, asked: TrialJob, code: Code, seed: int
) -> str:
    try:
        report = runner.run_job(replace(asked.job, candidate=code, seed=seed))
    except AttnlabError as error:
        return f"error: {error.message}"
    return _verdict(challenge, code, report)


def _verdict(challenge: Challenge, code: Code, report: Report) -> str:
    """What decided that a file does not pass; "" when it does."""
    verdict = make_verdict(challenge, code.file, report)
    if verdict.outcome == "passed":
        return ""
    first = next((c for c in verdict.checks if c.outcome in ("failed", "error")), None)
    if verdict.outcome == "error" or first is None:
        return verdict.message
    return f"{first.id}: {first.message}"


def _chunks(all_bugs: list[Bug]) -> Iterator[list[Bug]]:
    for first in range(0, len(all_bugs), CHUNK):
        yield all_bugs[first : first + CHUNK]


def _code(challenge: Challenge, path: str) -> Code:
    shown = Path(path).relative_to(challenge.folder).as_posix()
    return replace(read_source(Path(path), shown), name=challenge.class_name)

"""How strong is the grader? It must reject every bug and pass every right file.

The bugs are the mutants that a challenge ships, and those that `operators/` makes of its solution
and alternatives. A mutant that passes is not yet a fault of the grader: it may be equivalent to the
right files. Only one whose outputs are seen to differ (`equivalence.py`) has survived.

Right files and survivors are graded exactly as `attnlab grade` does it. The others run in the same
pipeline, but without an isolated process for each.
"""

import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from attnlab.catalogue.validate import other_right_files
from attnlab.errors import AttnlabError
from attnlab.mutation_testing.operators.base import Mutant, mutants
from attnlab.records import Challenge, Code, Job, Limits, Report, record
from attnlab.records.trial import Fate, Trial, TrialJob, TrialReport, TrialResult
from attnlab.target.challenge_job import challenge_job
from attnlab.target.source import read_source
from attnlab.verdict import make_verdict

SHIPPED = "shipped"  # in place of the mutation of a mutant that a person wrote
LIMITS = Limits(seconds=20.0)
CHUNK = 20  # bugs in one request
ALL = 100  # percent of the mutants


class JobRunner(Protocol):
    """Runs jobs: a worker, or a pool of them."""

    def run_job(self, job: Job) -> Report: ...

    def trials(self, job: TrialJob) -> TrialReport: ...


@record
class Bug:
    """A file that must be rejected."""

    code: Code
    mutant: Mutant

    @property
    def shipped(self) -> bool:
        """Whether a person wrote it."""
        return self.mutant.mutation == SHIPPED


@record
class Strength:
    """How the grader did on one challenge or program."""

    slug: str
    right: int  # solution and alternatives
    trials: tuple[Trial, ...]
    wrongs: tuple[str, ...]  # right files that were rejected, and errors of the grader
    digest: str = ""  # of the folder, where all its mutants were tried

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
        """The bugs that survived, or were rejected under some seeds alone."""
        return tuple(t for t in self.trials if t.fate == "survived" or t.flips)

    @property
    def good(self) -> bool:
        return not (self.wrongs or self.flips or self.count("survived"))


def measure(
    challenge: Challenge,
    runner: JobRunner,
    seeds: Sequence[int],
    pool: Executor,
    percent: int = ALL,
) -> Strength:
    """Grade every right file, and a share of the bugs, of a challenge or base under each seed."""
    rights = [_read_code(challenge, challenge.solution)]
    rights += [replace(c, name=challenge.class_name) for c in other_right_files(challenge)]
    job = challenge_job(challenge, Path(challenge.solution), stages=("check",), limits=LIMITS)
    job = replace(job, candidate=rights[0], until="verdict")
    request = TrialJob(job=job, right=tuple(rights[1:]), candidates=(), seeds=tuple(seeds))
    grader = Grader(challenge, runner, request)
    to_reject = [b for b in bugs(challenge) if b.shipped or is_drawn(b.mutant, percent)]
    chunks = [to_reject[first : first + CHUNK] for first in range(0, len(to_reject), CHUNK)]
    grades = [pool.submit(grader.rejections, code) for code in rights]
    futures = [pool.submit(grader.try_bugs, chunk) for chunk in chunks]
    trials = tuple(trial for future in futures for trial in future.result())
    wrongs = [
        f"{code.file}: {reason} (seed {seed})"
        for code, future in zip(rights, grades, strict=True)
        for seed, reason in zip(seeds, future.result(), strict=True)
        if reason
    ]
    wrongs += [f"{t.base}:{t.line}: {t.reason}" for t in trials if t.reason.startswith("error")]
    slug = challenge.base or challenge.slug
    return Strength(slug=slug, right=len(rights), trials=trials, wrongs=tuple(wrongs))


def bugs(challenge: Challenge) -> Iterator[Bug]:
    """Shipped mutants, then generated ones; the same change of the same line comes once."""
    for path in challenge.mutants:
        code = _read_code(challenge, path)
        title = code.text.strip('" \n').partition("\n")[0].strip('" ')
        mutant = Mutant(mutation=SHIPPED, line=1, before="", after=title, text=code.text)
        yield Bug(code=code, mutant=mutant)
    seen: set[tuple[str, str, str]] = set()
    for path in (challenge.solution, *challenge.alternatives):
        code = _read_code(challenge, path)
        for mutant in mutants(code.text):
            change = (mutant.mutation, mutant.before, mutant.after)
            if change not in seen:
                seen.add(change)
                yield Bug(code=replace(code, text=mutant.text), mutant=mutant)


def is_drawn(mutant: Mutant, percent: int) -> bool:
    """Whether a mutant belongs to this share of them, which is always the same."""
    change = f"{mutant.mutation}\n{mutant.before}\n{mutant.after}"
    return int(hashlib.sha256(change.encode()).hexdigest(), 16) % ALL < percent


def _read_code(challenge: Challenge, path: str) -> Code:
    name = Path(path).relative_to(challenge.folder).as_posix()
    return replace(read_source(Path(path), name), name=challenge.class_name)


@dataclass(frozen=True)
class Grader:
    """Grades files of one challenge."""

    challenge: Challenge
    runner: JobRunner
    request: TrialJob  # without candidates

    def try_bugs(self, chunk: list[Bug]) -> list[Trial]:
        """What became of each bug. A bug that ends the worker is tried again alone."""
        candidates = tuple(bug.code for bug in chunk)
        try:
            results = self.runner.trials(replace(self.request, candidates=candidates)).results
        except AttnlabError as error:
            if len(chunk) > 1:
                return [trial for bug in chunk for trial in self.try_bugs([bug])]
            return [self._grade_alone(chunk[0], f"error: {error.message}")]
        return [self._trial(bug, result) for bug, result in zip(chunk, results, strict=True)]

    def rejections(self, code: Code) -> list[str]:
        """Why `attnlab grade` rejects a file under each seed; "" where it passes."""
        return [self._rejection(code, seed) for seed in self.request.seeds]

    def _rejection(self, code: Code, seed: int) -> str:
        job = replace(self.request.job, candidate=code, seed=seed)
        try:
            return self._reason(code, self.runner.run_job(job))
        except AttnlabError as error:
            return f"error: {error.message}"

    def _reason(self, code: Code, report: Report) -> str:
        """The check that rejects a file, or the error; "" where it passes."""
        verdict = make_verdict(self.challenge, code.file, report)
        if verdict.outcome == "passed":
            return ""
        first = next((c for c in verdict.checks if c.outcome in ("failed", "error")), None)
        if verdict.outcome == "error" or first is None:
            return verdict.message
        return f"{first.id}: {first.message}"

    def _trial(self, bug: Bug, result: TrialResult) -> Trial:
        """A bug that would survive is graded again in a process of its own."""
        reasons = [self._reason(bug.code, report) for report in result.reports]
        if result.difference and not any(reasons):
            reasons = self.rejections(bug.code)
        return settle(bug.code.file, bug.mutant, reasons, result.difference)

    def _grade_alone(self, bug: Bug, error: str) -> Trial:
        """A bug that cannot be compared has survived where `attnlab grade` passes it or fails."""
        reasons = self.rejections(bug.code)
        if all(reason and not reason.startswith("error") for reason in reasons):
            return make_trial(bug.code.file, bug.mutant, "killed", reasons[0])
        return make_trial(bug.code.file, bug.mutant, "survived", error)


def settle(base: str, mutant: Mutant, reasons: Sequence[str], difference: str) -> Trial:
    """What became of a mutant by why it is rejected under each seed, "" where it passes."""
    if all(reasons):
        return make_trial(base, mutant, "killed", reasons[0])
    reason = difference or next(filter(None, reasons), "")
    fate: Fate = "survived" if difference else "equivalent"
    return make_trial(base, mutant, fate, reason, flips=any(reasons))


def make_trial(base: str, mutant: Mutant, fate: Fate, reason: str, flips: bool = False) -> Trial:
    return Trial(
        base=base,
        mutation=mutant.mutation,
        line=mutant.line,
        before=mutant.before,
        after=mutant.after,
        fate=fate,
        reason=reason,
        flips=flips,
    )

"""How strong is the grader? It must reject every bug and pass every right version.

The bugs are those that a base ships, and the mutants that `operators/` makes of its right versions.
A mutant that passes is not yet a fault of the grader: it may be equivalent to the right ones. Only
one that is seen to differ (`equivalence.py`) has survived.

Right versions and survivors are graded exactly as `attnlab grade` does it. The others run in the
same pipeline, but without an isolated process for each.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from attnlab.errors import AttnlabError
from attnlab.mutation_testing.operators.base import Mutant
from attnlab.records import Job, Report, record
from attnlab.records.program import ProgramJob, ProgramReport
from attnlab.records.trial import (
    Fate,
    FileTrialReport,
    ProgramTrialJob,
    ProgramTrialReport,
    Trial,
    TrialJob,
    TrialResult,
)

SHIPPED = "shipped"  # in place of the mutation of a mutant that a person wrote
CHUNK = 20  # bugs in one request
ALL = 100  # percent of the mutants
V = TypeVar("V")  # a version of a base: one file, or the files of a program
R = TypeVar("R", Report, ProgramReport)


class Runner(Protocol):
    """Runs jobs: a worker, or a pool of them."""

    def run_job(self, job: Job) -> Report: ...
    def run_program(self, job: ProgramJob) -> ProgramReport: ...
    def trials(self, job: TrialJob) -> FileTrialReport: ...
    def program_trials(self, job: ProgramTrialJob) -> ProgramTrialReport: ...


@dataclass(frozen=True)
class Right(Generic[V]):
    """A version that must pass."""

    name: str
    version: V
    seed: int = 0  # that is added to those of the grades


@dataclass(frozen=True)
class Bug(Generic[V]):
    """A version that must be rejected."""

    file: str  # the one that was changed
    version: V
    mutant: Mutant

    @property
    def shipped(self) -> bool:
        """Whether a person wrote it."""
        return self.mutant.mutation == SHIPPED


@record
class Strength:
    """How the grader did on one challenge or program."""

    slug: str
    right: int  # versions
    trials: tuple[Trial, ...]
    wrongs: tuple[str, ...]  # right versions that were rejected, and errors of the grader
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


class VersionGrader(ABC, Generic[V, R]):
    """Grades versions of one base under each of its seeds."""

    slug: str
    seeds: tuple[int, ...]

    @abstractmethod
    def rights(self) -> list[Right[V]]: ...

    @abstractmethod
    def bugs(self) -> Iterator[Bug[V]]:
        """Shipped ones, then generated ones."""

    @abstractmethod
    def grade(self, version: V, seed: int, *, passed: bool) -> R:
        """What `attnlab grade` finds; `passed`: it has before, though it is known to differ."""

    @abstractmethod
    def try_all(self, versions: tuple[V, ...]) -> Sequence[TrialResult[R]]:
        """What is found of each without a process of its own."""

    @abstractmethod
    def reason(self, file: str, report: R) -> str:
        """What rejects a version, or the error; "" where it passes."""

    def measure(self, pool: Executor, percent: int) -> Strength:
        """Grade every right version, and this share of the bugs."""
        rights = self.rights()
        to_reject = [b for b in self.bugs() if b.shipped or is_drawn(b.mutant, percent)]
        chunks = [to_reject[first : first + CHUNK] for first in range(0, len(to_reject), CHUNK)]
        grades = [pool.submit(self.wrongs, right) for right in rights]
        futures = [pool.submit(self.try_bugs, chunk) for chunk in chunks]
        trials = tuple(trial for future in futures for trial in future.result())
        wrongs = [line for future in grades for line in future.result()]
        wrongs += [f"{t.base}:{t.line}: {t.reason}" for t in trials if t.reason.startswith("error")]
        return Strength(slug=self.slug, right=len(rights), trials=trials, wrongs=tuple(wrongs))

    def wrongs(self, right: Right[V]) -> list[str]:
        """A line for each seed under which a right version is rejected."""
        reasons = self._reasons(right.name, right.version, right.seed)
        told = zip(self.seeds, reasons, strict=True)
        return [f"{right.name}: {reason} (seed {seed})" for seed, reason in told if reason]

    def try_bugs(self, chunk: list[Bug[V]]) -> list[Trial]:
        """What became of each bug. A bug that ends the worker is tried again alone."""
        try:
            results = self.try_all(tuple(bug.version for bug in chunk))
        except AttnlabError as error:
            if len(chunk) > 1:
                return [trial for bug in chunk for trial in self.try_bugs([bug])]
            return [self._grade_alone(chunk[0], f"error: {error.message}")]
        return [self._trial(bug, result) for bug, result in zip(chunk, results, strict=True)]

    def _trial(self, bug: Bug[V], result: TrialResult[R]) -> Trial:
        """A bug that would survive is graded again in a process of its own."""
        reasons = [self.reason(bug.file, report) for report in result.reports]
        if result.difference and not any(reasons):
            reasons = self._reasons(bug.file, bug.version, passed=True)
        if all(reasons):
            return make_trial(bug.file, bug.mutant, "killed", reasons[0])
        reason = result.difference or next(filter(None, reasons), "")
        fate: Fate = "survived" if result.difference else "equivalent"
        return make_trial(bug.file, bug.mutant, fate, reason, flips=any(reasons))

    def _grade_alone(self, bug: Bug[V], error: str) -> Trial:
        """A bug that cannot be compared has survived where `attnlab grade` passes it or fails."""
        reasons = self._reasons(bug.file, bug.version)
        if all(reason and not reason.startswith("error") for reason in reasons):
            return make_trial(bug.file, bug.mutant, "killed", reasons[0])
        return make_trial(bug.file, bug.mutant, "survived", error)

    def _reasons(self, file: str, version: V, first: int = 0, passed: bool = False) -> list[str]:
        """Why `attnlab grade` rejects a version under each seed; "" where it passes."""
        found = []
        for seed in self.seeds:
            try:
                report = self.grade(version, first + seed, passed=passed)
                found.append(self.reason(file, report))
            except AttnlabError as error:
                found.append(f"error: {error.message}")
        return found


def is_drawn(mutant: Mutant, percent: int) -> bool:
    """Whether a mutant belongs to this share of them, which is always the same."""
    change = f"{mutant.mutation}\n{mutant.before}\n{mutant.after}"
    return int(hashlib.sha256(change.encode()).hexdigest(), 16) % ALL < percent


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

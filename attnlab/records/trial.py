"""What the strength of the grader is measured with: mutants are tried, and each comes to an end.

A mutant that does anything else than the right files must be rejected. `TrialJob` asks the lab to
grade many mutants of one challenge and to look, apart from all checks, at what those do that pass;
`TrialReport` is its answer. A `Trial` is what was learned of one mutant.
"""

from typing import Generic, Literal, TypeVar

from attnlab.records import Code, Contract, Job, Report, record
from attnlab.records.program import Files, ProgramJob, ProgramReport

R = TypeVar("R", Report, ProgramReport)
Fate = Literal["killed", "equivalent", "survived"]


@record
class TrialJob:
    """Candidates to be graded as `job` says, its own candidate being the solution."""

    job: Job
    right: tuple[Code, ...]  # the other right files: what they agree on is promised
    candidates: tuple[Code, ...]
    seeds: tuple[int, ...] = (0,)
    seconds: float = 30.0  # for one candidate with all seeds
    compare: bool = True  # one that passes with the right files, by more than grading does


@record
class TrialResult(Generic[R]):
    """What was seen of one candidate: a report for each seed, and how it differs if it passes.
    A program's goals are tried where it passes and is seen to differ."""

    reports: tuple[R, ...]
    difference: str = ""  # "" of a candidate that does the same, or that was rejected anyway


@record
class TrialReport(Generic[R]):
    results: tuple[TrialResult[R], ...] = ()
    fault: str = ""  # ours: nothing could be said


@record
class ProgramTrialJob:
    """Whole programs to be graded as `job` says, its own files being the right ones."""

    job: ProgramJob
    candidates: tuple[Files, ...]
    seeds: tuple[int, ...] = (0,)
    seconds: float = 60.0  # for one candidate with all seeds
    compare: bool = True  # one that passes with the right program, by more than grading does


FileTrialReport = TrialReport[Report]
ProgramTrialReport = TrialReport[ProgramReport]


@record
class Trial:
    """One mutant, and what became of it."""

    base: str  # the file it was made from: "solution.py"
    mutation: str
    line: int
    before: str
    after: str
    fate: Fate
    reason: str = ""  # what killed it, or how it differs and was not seen
    flips: bool = False  # other seeds came to another verdict


def passes(report: Report) -> bool:
    """Nothing failed, and nothing could not be told."""
    bad = any(c.outcome in ("failed", "error") for c in report.checks)
    return report.outcome == "ok" and not bad


# ---------------------------------------------------------------- a user's own tests


@record
class SuiteCandidate:
    """A mutant that the tests pass, and the classes and functions in which it may differ."""

    text: str
    names: tuple[str, ...]


@record
class SuiteRequest:
    """What is asked of a process that holds a user's tests: to run them with `text` in place of
    their module; or, with contracts, how `candidates` differ from it."""

    text: str
    seconds: float
    candidates: tuple[SuiteCandidate, ...] = ()
    contracts: tuple[tuple[str, Contract], ...] = ()  # of classes and functions, by name


@record
class Comparison:
    """How a mutant differs from the module, and the classes and functions that were compared."""

    difference: str = ""
    compared: tuple[str, ...] = ()


@record
class SuiteRun:
    """How a run of the tests ended; `unused`: nothing imported the module."""

    outcome: Literal["passed", "failed", "crashed", "timeout", "unused"]
    tests: int = 0  # that were run, or collected where none was
    test: str = ""  # the first that failed, or the file that could not be collected
    message: str = ""
    seconds: float = 0.0
    comparisons: tuple[Comparison, ...] = ()
    imported: tuple[str, ...] = ()  # modules that the run imported, but for those of the project


@record
class SuiteStrength:
    """Which bugs a user's tests reject."""

    module: str
    suite: str  # the tests, as they were named
    tests: int
    seconds: float  # that they take on the module as it is
    trials: tuple[Trial, ...]
    unproved: int = 0  # survivors that could not be compared with the module: some may do the same

    def of_fate(self, fate: Fate) -> tuple[Trial, ...]:
        return tuple(trial for trial in self.trials if trial.fate == fate)

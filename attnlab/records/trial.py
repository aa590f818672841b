"""What the strength of the grader is measured with: mutants are tried, and each comes to an end.

A mutant that does anything else than the right files must be rejected. `TrialJob` asks the lab to
grade many mutants of one challenge and to look, apart from all checks, at what those do that pass;
`TrialReport` is its answer. A `Trial` is what was learned of one mutant.
"""

from typing import Literal

from attnlab.records import Code, Job, Report, record
from attnlab.records.program import Files, Program, ProgramReport

Fate = Literal["killed", "equivalent", "survived"]


@record
class TrialJob:
    """Candidates to be graded as `job` says, its own candidate being the solution."""

    job: Job
    right: tuple[Code, ...]  # the other right files: what they agree on is promised
    candidates: tuple[Code, ...]
    seeds: tuple[int, ...] = (0,)
    seconds: float = 30.0  # for one candidate with all seeds


@record
class TrialResult:
    """What was seen of one candidate: a report for each seed, and how it differs if it passes."""

    reports: tuple[Report, ...]
    difference: str = ""  # "" of a candidate that does the same, or that was rejected anyway


@record
class TrialReport:
    results: tuple[TrialResult, ...] = ()
    fault: str = ""  # ours: nothing could be said


@record
class ProgramTrialJob:
    """Whole programs to be graded as mutants of a right one."""

    program: Program
    candidates: tuple[Files, ...]
    seeds: tuple[int, ...] = (0,)
    seconds: float = 60.0  # for one candidate with all seeds
    compare: bool = True  # one that passes with the right program, by more than grading does


@record
class ProgramTrialResult:
    """What was seen of one program; goals are tried where it passes and is seen to differ."""

    reports: tuple[ProgramReport, ...]
    difference: str = ""


@record
class ProgramTrialReport:
    results: tuple[ProgramTrialResult, ...] = ()
    fault: str = ""  # ours: nothing could be said


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

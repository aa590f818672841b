"""Grading a whole class: what was handed in, how it is graded, and one verdict for each."""

from attnlab.records.base import record
from attnlab.records.job import Limits, Verdict

LAYOUT = 1  # of what a run's file holds


@record
class Submission:
    """What one person handed in."""

    name: str  # printable, and of nobody else in the run
    path: str  # of a file, or of the folder of a round
    problem: str = ""  # why there is nothing to grade


@record
class BatchRun:
    """What all verdicts of one run have in common, so that they can be compared."""

    challenge: str
    digest: str  # of the challenge's files
    attnlab: str
    sources: str  # a digest of attnlab's
    torch: str
    limits: Limits
    seed: int
    total: int  # submissions
    layout: int = LAYOUT
    parts: tuple[str, ...] = ()  # "1/2": those of the class that are in it, where not all are


@record
class Graded:
    """The one verdict on a submission; of its checks only those that failed or were not made."""

    name: str
    digest: str  # of what was handed in
    alike: str  # the same for all that say the same but for names, comments and spaces
    verdict: Verdict
    passed: int  # checks that hold
    least: bool = False  # checks that were not made count as failed in the score

    @property
    def first(self) -> str:
        """The check that failed first, else the outcome."""
        checks = self.verdict.checks if self.verdict.outcome == "failed" else ()
        failed = (check.id for check in checks if check.outcome == "failed")
        return next(failed, self.verdict.outcome)

    @property
    def message(self) -> str:
        """What the check that failed first says, else the verdict."""
        checks = self.verdict.checks if self.verdict.outcome == "failed" else ()
        failed = (check.message for check in checks if check.outcome == "failed")
        return next(failed, "") or self.verdict.message


@record
class Told:
    """A message, and whose verdicts say it."""

    message: str
    names: tuple[str, ...]


@record
class Reason:
    """A check that was the first to fail, or another end, and whose submissions met it."""

    id: str
    names: tuple[str, ...]
    told: tuple[Told, ...]  # the most frequent message first


@record
class Alike:
    """Submissions that say the same."""

    names: tuple[str, ...]
    shipped: bool = False  # and say what the challenge ships
    solution: bool = False  # or what its solution says, which is no wonder


@record
class BatchSummary:
    """What became of a run so far."""

    run: BatchRun
    file: str  # that holds it
    graded: tuple[Graded, ...]  # in the order of their names
    outcomes: dict[str, int]
    reasons: tuple[Reason, ...]  # why submissions did not pass, the most frequent first
    alike: tuple[Alike, ...]


@record
class BatchProgress:
    """How far a run is, for the eye."""

    done: int
    total: int
    rate: float  # verdicts a second, since the command began
    left: float  # seconds that the rest will take
    outcomes: dict[str, int]
    reasons: dict[str, int]  # the most frequent first
    slots: tuple[str, ...] = ()  # what is being graded
    last: Graded | None = None

"""The scorecard of an interview: what became of its bugs, its tasks and its questions."""

from typing import Literal

from attnlab.records.base import record
from attnlab.records.patch import FollowUp
from attnlab.records.practice import RoundTask
from attnlab.records.program import GoalResult, PartResult
from attnlab.records.quiz import QuizVerdict

RATINGS = ("early", "partial", "solid", "strong")  # of an interview
HINT_COST = 0.2  # the share of the points of a task that a hint costs


@record
class Rating:
    """How good an interview was, in a word."""

    name: str
    next: str = ""  # the one above; "" at the highest
    missing: tuple[str, ...] = ()  # what was missing for that


@record
class BugCard:
    """What became of one bug; `why`, `find` and the questions are the material's."""

    id: str
    category: str
    level: int
    fixed: bool | None  # None where the program does what no choice of bugs explains
    named: bool  # a note points at its lines, takes them for wrong, and not for another reason
    # Whether it says why, as the person judges at the end: "open" before.
    reason: Literal["", "open", "said", "stayed"]
    fixed_at: float | None  # seconds on the clock at which a grade found it gone for the first time
    named_at: float | None
    why: str
    find: str
    notes: tuple[str, ...] = ()  # those that point at it
    hints: int = 0  # that were shown about it before it was named or gone
    triages: int = 0  # that named its place before
    again_at: float | None = None  # the same for the last time, where it came back in between
    places: tuple[str, ...] = ()  # file:line, in the files as they were given

    @property
    def found(self) -> bool:
        return self.named or bool(self.fixed)


@record
class DecoyCard:
    """Code that looks wrong and is right, and whether that was seen."""

    id: str
    why: str
    named: bool = False  # a note took it for a bug
    changed: bool = False
    cleared: bool = False  # a note says that it is right


@record
class QuestionCard:
    """A follow-up question, and what a person said of the own answer."""

    bug: str  # or the stage, which it is about
    question: str
    answer: str
    outcome: Literal["said", "stayed", "open"] = "open"
    note: bool = False  # it asks whether notes say what is wrong; the answer says that


@record
class StageCard:
    """What became of a task after the bugs: it may never have been opened, or never graded."""

    id: str
    title: str
    outcome: Literal["passed", "failed", "open", "locked"]
    message: str = ""  # the first check that failed
    seconds: float = 0.0  # from when it was opened until it passed, or was graded last
    minutes: int = 0  # that it is meant to take
    grades: int = 0
    hints: int = 0


@record
class Scorecard:
    """One interview at its end."""

    number: int
    slug: str
    title: str
    outcome: str  # of the last grade
    seconds: float  # on the clock, at the hand-in that counts
    minutes: int
    late: bool  # it was submitted after the time
    bugs: tuple[BugCard, ...]
    parts: tuple[PartResult, ...]
    goals: tuple[GoalResult, ...]
    new_fault: bool  # something is wrong that was not before
    changed_lines: int  # over all files
    grades: int  # without those of a hand-in
    hints: int
    asked: tuple[FollowUp, ...]  # clarifying questions, with their answers
    questions: int  # that could be asked
    rating: Rating
    triages: int = 0  # in which something was named
    submits: int = 0
    again_at: float | None = None  # the last hand-in, where an earlier one passed and counts
    started: float = 0.0  # seconds since 1970
    slips: tuple[str, ...] = ()  # notes that point at a line without a bug
    placeless: tuple[str, ...] = ()  # notes that name no place
    late_notes: int = 0  # that were made after everything was right
    decoys: tuple[DecoyCard, ...] = ()
    follow_ups: tuple[QuestionCard, ...] = ()
    stages: tuple[StageCard, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def found(self) -> int:
        return sum(bug.found for bug in self.bugs)

    @property
    def fixed(self) -> int:
        return sum(bool(bug.fixed) for bug in self.bugs)

    @property
    def named(self) -> int:
        return sum(bug.named for bug in self.bugs)


@record
class TaskCard:
    """What became of one task of a round of another format."""

    number: int
    task: RoundTask
    verdicts: tuple[QuizVerdict, ...]  # on its parts, or on each hand-in of its file
    category: str = ""  # of the bug that it is about
    hints: int = 0
    fixed: bool | None = None  # as a bug has it; nothing is fixed by an answer
    named: bool | None = None

    @property
    def done(self) -> bool:
        return bool(self.verdicts) and not self.verdicts[-1].next

    @property
    def points(self) -> float:
        """From 0 to 1: of its parts together, or of the last hand-in of its file."""
        counted = self.verdicts[-1:] if self.task.is_file else self.verdicts
        whole = sum(verdict.score for verdict in counted) / max(1, len(counted))
        return max(0.0, whole - HINT_COST * self.hints)

    @property
    def outcome(self) -> Literal["right", "partly", "wrong", "open"]:
        if not self.done:
            return "open"
        marks = {verdict.outcome for verdict in self.verdicts}
        if marks == {"right"} and not self.hints:
            return "right"
        return "wrong" if marks == {"wrong"} else "partly"

    @property
    def found(self) -> bool:
        """Of code to read: whether the line was named; what is asked next is no search."""
        if self.task.kind == "spot" and self.done and not self.hints:
            return self.verdicts[0].outcome == "right"
        return self.outcome == "right"

    @property
    def seconds(self) -> float:
        return sum(verdict.seconds for verdict in self.verdicts)


@record
class FormatCard:
    """One round of another format at its end."""

    number: int
    slug: str
    seconds: float  # on the clock, when its last task was done or it was ended
    minutes: int
    late: bool
    tasks: tuple[TaskCard, ...]
    rating: Rating
    started: float = 0.0  # seconds since 1970

    fixed: int | None = None  # as the card of a program has it; nothing is fixed by an answer
    named: int | None = None
    stages: tuple[StageCard, ...] = ()

    @property
    def bugs(self) -> tuple[TaskCard, ...]:
        return self.tasks

    @property
    def found(self) -> int:
        return sum(task.found for task in self.tasks)

    @property
    def hints(self) -> int:
        return sum(task.hints for task in self.tasks)

    @property
    def points(self) -> float:
        return sum(task.points for task in self.tasks)


RoundCard = Scorecard | FormatCard

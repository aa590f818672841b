"""What a person did while practising, and what became of an interview."""

from collections.abc import Collection
from itertools import takewhile
from typing import Literal

from attnlab.records.base import record

EventKind = Literal[
    "grade", "run", "hint", "solution", "start", "note", "ask", "submit", "end", "abandon",
    "answer", "stage", "drop", "triage", "quiz", "task", "plan",
]  # fmt: skip
Mark = Literal["right", "partly", "wrong"]  # of an answer
WRITTEN = ("implement", "fix")  # kinds of tasks whose answer is a file
FIX, ROUND = "fix", "round"  # kinds of questions besides those of quizzes
QUESTION = "question"  # what a card asks that needs a quiz alone
STAYED = "stayed"  # the outcome of a question whose answer was not said
REASON, RIGHT = "reason", "right"  # the outcome of a note that gives one, that takes code for right


@record
class Event:
    """One thing that a person did, at a challenge or in an interview."""

    kind: EventKind
    base: str  # the slug of the challenge or program
    at: float = 0.0  # seconds since 1970
    bug: str = ""  # which it is about, where it is about one; a note may name several
    question: str = ""  # that was asked or answered; of a quiz, its kind of question
    outcome: str = ""
    seconds: float = 0.0  # since the interview began, or that it took
    hints: int = 0  # that had been shown
    interview: int = 0  # its number; 0 for none
    text: str = ""  # what was typed, or JSON of what the kind has besides
    category: str = ""  # of the bug that a quiz asks about

    def is_about(self, bugs: Collection[str]) -> bool:
        return not set(bugs).isdisjoint(self.bug.split())


@record
class RoundTask:
    """One task of a round of another format than debugging a program."""

    kind: str  # a kind of question, "implement" or "fix"
    id: str  # of the question, or the slug of the challenge

    @property
    def is_file(self) -> bool:
        return self.kind in WRITTEN


@record
class Interview:
    """A round against the clock, and what was done in it."""

    number: int
    slug: str
    folder: str
    bugs: tuple[str, ...]  # and decoys
    minutes: int  # 0: without a limit
    seed: int
    started: float  # seconds since 1970
    place: str = ""  # the folder in which it was started
    events: tuple[Event, ...] = ()
    tasks: tuple[RoundTask, ...] = ()  # of another format, in the order in which they are asked

    @property
    def name(self) -> str:
        return self.slug.partition("/")[2]

    @property
    def closing(self) -> Event | None:
        """The event that ended it, if one did."""
        return next((e for e in self.events if e.kind in ("end", "abandon")), None)

    @property
    def opened_stage(self) -> Event | None:
        """The event that opened a stage last."""
        opened = (e for e in reversed(self.events) if e.kind == "stage" and e.outcome == "open")
        return next(opened, None)

    def stage_seconds(self, now: float) -> float:
        """Seconds since a stage was opened last, until it passed."""
        opened, events = self.opened_stage, self.of_kind("stage")
        if opened is None:
            return 0.0
        graded = events[events.index(opened) :]
        passed = (event.seconds for event in graded if event.outcome == "passed")
        return next(passed, self.elapsed(now)) - opened.seconds

    @property
    def hand_ins(self) -> tuple[Event, ...]:
        """Those of the bugs: before a stage was opened."""
        before = takewhile(lambda event: event.kind != "stage", self.events)
        return tuple(event for event in before if event.kind == "submit")

    @property
    def counted_hand_in(self) -> Event | None:
        """The grade or hand-in whose time counts: the first in which everything was right and that
        no later hand-in undid, else the last hand-in. A right grade counts once it was handed in,
        or a stage opened on it."""
        sure = self.opened_stage or any(e.outcome == "passed" for e in self.hand_ins[-1:])
        before = takewhile(lambda event: event.kind != "stage", self.events)
        counted = None
        for event in before:
            if event.kind != "submit" and not (
                sure and event.kind == "grade" and event.outcome == "passed"
            ):
                continue
            if counted is None or not counted.outcome == event.outcome == "passed":
                counted = event
        return counted

    @property
    def path(self) -> str:
        """Where its files lie."""
        return f"{self.place}/{self.folder}" if self.place else self.folder

    @property
    def last(self) -> float:
        """When something was done last."""
        return max([self.started, *(event.at for event in self.events)])

    def elapsed(self, now: float) -> float:
        """Seconds on its clock. It stands still while the clock of the machine is behind what was
        noted last, and after the end."""
        if closing := self.closing:
            return closing.at - self.started
        return max(now, self.last) - self.started

    @property
    def limit(self) -> int:
        """Seconds that the bugs may take; 0 for no limit, as in a stage."""
        return 0 if self.opened_stage else 60 * self.minutes

    def left(self, now: float) -> float:
        """Seconds until the time is up; negative once it was."""
        return self.limit - self.elapsed(now)

    def of_kind(self, kind: EventKind) -> tuple[Event, ...]:
        return tuple(event for event in self.events if event.kind == kind)

    @property
    def help(self) -> int:
        """How often help was taken that the rating counts."""
        return len(self.of_kind("hint")) + len(self.of_kind("triage"))

    @property
    def notes(self) -> dict[int, Event]:
        """The notes that were not dropped, by their numbers from 1."""
        dropped = {event.question for event in self.of_kind("drop")}
        taken = enumerate(self.of_kind("note"), 1)
        return {number: event for number, event in taken if str(number) not in dropped}


@record
class RoundSummary:
    """One interview of several, in a line."""

    number: int
    slug: str
    bugs: int  # or tasks
    found: int
    fixed: int | None  # None of tasks
    named: int | None
    hints: int
    seconds: float
    late: bool
    rating: str
    started: float = 0.0  # seconds since 1970
    stages: str = ""  # `1 of 3`, that passed


@record
class CategoryTrend:
    """What became of all bugs of one kind."""

    category: str
    bugs: int
    found: int
    fixed: int
    named: int
    lately: tuple[bool, ...]  # whether each of the last ones was found, the newest last
    to_fix: int = 0  # of them; a question asks for no fix
    to_name: int = 0


@record
class Trend:
    """What several interviews show."""

    rounds: tuple[RoundSummary, ...]  # the last ones, the newest last
    categories: tuple[CategoryTrend, ...]  # the weakest first
    weakest: str  # the category to practise, of all answers; "" where none is weak


# ---------------------------------------------------------------- memory


@record
class Answer:
    """One question that was answered, or one bug that was looked for."""

    category: str  # of the bug: "mask"
    kind: str  # of the question: "fix", "spot"
    mark: Mark  # right: without help; a quiz or challenge at the first try
    seconds: float  # 0 where that is not known
    at: float  # seconds since 1970
    follows: bool = False  # it was asked next about the code of another one

    @property
    def right(self) -> bool:
        return self.mark == "right"


@record
class CategoryStats:
    """What became of all questions about one kind of bug, or of one kind."""

    name: str
    answers: int
    right: int  # at the first try
    median_seconds: float
    lately: tuple[bool, ...]  # of the last ones, whether each was right; the newest last
    earlier: tuple[bool, ...]

    @property
    def lately_share(self) -> float:
        return sum(self.lately) / max(1, len(self.lately))

    @property
    def trend(self) -> Literal["", "better", "worse", "same"]:
        """How the last ones compare with those before; "" where those are fewer."""
        if len(self.earlier) < len(self.lately):
            return ""
        before = sum(self.earlier) / len(self.earlier)
        if abs(self.lately_share - before) * len(self.lately) < 1:  # less than one answer
            return "same"
        return "better" if self.lately_share > before else "worse"


@record
class Stats:
    """How good a person's answers are."""

    answers: int
    right: int
    categories: tuple[CategoryStats, ...]  # the weakest first
    kinds: tuple[CategoryStats, ...]
    weak: tuple[CategoryStats, ...] = ()  # kinds of bugs to practise

    @property
    def weakest(self) -> CategoryStats | None:
        return next(iter(self.weak), None)


@record
class DueCard:
    """A kind of question about a kind of bug that is to be asked again."""

    category: str  # "" where it would tell the answer
    kind: str
    due: float  # seconds since 1970
    recall: float  # how likely it is known now, 0 to 1
    minutes: float  # that it takes
    last: Mark = "right"  # what became of the last answer
    command: str = ""  # which asks it, in another variant
    count: int = 1  # things to do of which it is made

    @property
    def noun(self) -> str:
        if self.kind == ROUND:
            return "interview"
        return "challenge" if self.kind in WRITTEN else QUESTION


@record
class PlanStep:
    minutes: float
    command: str
    why: str
    slug: str = ""  # of the challenge that it starts


@record
class PlanDay:
    number: int
    steps: tuple[PlanStep, ...]

    @property
    def minutes(self) -> float:
        return sum(step.minutes for step in self.steps)


@record
class KeptGrade:
    """A grade as the file of progress keeps it."""

    slug: str
    at: str
    outcome: str
    score: float
    file: str


@record
class KeptChallenge:
    """What was done with a challenge, as the file of progress keeps it."""

    slug: str
    started: int = 0
    hints: int = 0
    revealed: int = 0
    solution_seen: int = 0
    peeked: int = 0


@record
class KeptProgress:
    """Everything that was done, to be taken to another machine."""

    format: int
    events: tuple[Event, ...] = ()
    grades: tuple[KeptGrade, ...] = ()
    challenges: tuple[KeptChallenge, ...] = ()

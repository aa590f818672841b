"""What a quiz asks, and what it says of an answer."""

from dataclasses import field

from attnlab.records.base import record
from attnlab.records.practice import Mark
from attnlab.records.trace import Op

BUDGET, COST = 5, 0.1  # measurements of an incident; the share of the points that each costs
POINTS: dict[Mark, float] = {"right": 1.0, "partly": 0.5, "wrong": 0.0}


@record
class Question:
    """One question; nothing in it tells the answer. The same id asks the same again."""

    id: str  # "shapes.17"; of what is asked next about the same code: "shapes.17.2"
    kind: str
    seed: int
    prompt: str
    code: str = ""
    first: int = 1  # the number of the first line of `code`
    line: int | None = None  # that is marked
    choices: tuple[str, ...] = ()  # one of them is right
    sizes: dict[str, int] = field(default_factory=dict)  # what symbols of the code stand for
    file: str = ""  # the name of the file that `code` is from
    expects: str = ""  # what is typed where there are no choices: "names or numbers of the axes"
    log: tuple[str, ...] = ()  # what a run printed
    measurements: tuple[str, ...] = ()  # that can be asked for, a few of them


@record
class QuizVerdict:
    """What became of an answer, with the right one and what shows that it is right."""

    id: str
    kind: str
    outcome: Mark
    answer: str  # as it was understood
    right: str
    message: str  # how the two differ
    why: str = ""
    rows: tuple[Op, ...] = ()  # of the trace, which the right answer was read off
    next: str = ""  # the id of what is asked next about the same code; "" where nothing is
    seconds: float = 0.0
    measured: int = 0  # measurements that were asked for
    prompt: str = ""  # what was asked

    @property
    def score(self) -> float:
        return POINTS[self.outcome] * (1 - COST * self.measured)


@record
class Measurement:
    """What was asked of the run of an incident."""

    id: str  # of the question
    name: str
    value: str
    left: int  # that may still be asked for

"""What a lesson is made of. Numbers are kept whole, and rounded when they are shown."""

from attnlab.records import record

Cell = str | int | float


@record
class Grid:
    """A small table of numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    digits: int = 5  # after the point


@record
class Question:
    question: str
    answer: str


@record
class Step:
    """One idea. Its fields are shown in this order."""

    title: str
    text: str = ""
    lines: tuple[str, ...] = ()  # arithmetic before the numbers
    grids: tuple[Grid, ...] = ()
    proof: tuple[str, ...] = ()  # arithmetic with the numbers
    after: str = ""
    questions: tuple[Question, ...] = ()


@record
class Lesson:
    id: str
    title: str
    about: str
    steps: tuple[Step, ...]
    next: str = ""


def questions_in(text: str) -> tuple[Question, ...]:
    """Blocks of a question, one line, and its answer; an empty line stands between them."""
    blocks = [block.split("\n", 1) for block in text.strip().split("\n\n")]
    return tuple(Question(question=q, answer=" ".join(a.split())) for q, a in blocks)

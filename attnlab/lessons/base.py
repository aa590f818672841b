"""What a lesson is made of. Numbers are kept whole, and rounded when they are shown."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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


def read_texts(path: Path) -> dict[str, Any]:
    """The texts of a lesson. Blocks of a question, one line, and its answer come last; an empty
    line stands between them."""
    return tomllib.loads(path.read_text("utf-8"))


def make_lesson(id_: str, texts: Mapping[str, Any], numbers: Mapping[str, Any]) -> Lesson:
    """The lesson of these texts: `numbers` stand where its lines have `{names}`, and as the rows
    of its grids."""
    blocks = [block.split("\n", 1) for block in texts["questions"].strip().split("\n\n")]
    asked = tuple(Question(question=q, answer=" ".join(a.split())) for q, a in blocks)
    return Lesson(
        id=id_,
        title=texts["title"],
        about=texts["about"],
        steps=(
            *(_step(step, numbers) for step in texts["steps"]),
            Step(title="What people ask", questions=asked),
        ),
        next=texts["next"],
    )


def _step(told: Mapping[str, Any], numbers: Mapping[str, Any]) -> Step:
    def filled(key: str) -> str:
        return str(told.get(key, "")).format_map(numbers)

    return Step(
        title=told["title"],
        text=told.get("text", ""),
        lines=tuple(filled("lines").splitlines()),
        grids=tuple(_grid(grid, numbers) for grid in told.get("grids", ())),
        proof=tuple(filled("proof").splitlines()),
        after=filled("after"),
    )


def _grid(told: Mapping[str, Any], numbers: Mapping[str, Any]) -> Grid:
    rows = tuple(map(tuple, numbers[told["rows"]]))
    return Grid(**{**told, "columns": tuple(told["columns"]), "rows": rows})

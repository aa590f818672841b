"""The catalogue: every challenge, and how far one is with it."""

from __future__ import annotations

from itertools import groupby

from rich.table import Table
from rich.text import Text

from attnlab.records import Challenge, Standing, record
from attnlab.render.json import Document
from attnlab.render.screen import Marks, Screen, fit, level, plural

Row = tuple[Challenge, Standing]
WIDE = 100


@record
class Listing:
    rows: tuple[Row, ...]

    def show(self, screen: Screen) -> None:
        name_width = max((len(c.name) for c, _ in self.rows), default=0)
        so_far = max((len(state(s)) for _, s in self.rows), default=0)
        for topic, rows in groupby(self.rows, key=lambda row: row[0].topic):
            screen.say((topic, "title"))
            screen.print(_table(list(rows), screen, name_width, so_far))
            screen.gap()
        solved = sum(standing.status == "solved" for _, standing in self.rows)
        screen.say(f"{solved} of {plural(len(self.rows), 'challenge')} solved")
        screen.do_next(_next(self.rows))

    def document(self) -> Document:
        return {"challenges": [_document(*row) for row in self.rows]}


def _table(rows: list[Row], screen: Screen, name_width: int, so_far: int) -> Table:
    """Nothing is wrapped: the title is cropped to what is left, the kind needs a wide screen."""
    marks = screen.marks
    widths = [3, name_width, 5, so_far] + [9] * (screen.width >= WIDE)
    title = screen.width - sum(widths) - 2 * len(widths)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for width in [*widths, max(title, 1)]:
        table.add_column(width=width, no_wrap=True)
    for challenge, standing in rows:
        mark, style = _mark(standing, marks)
        cells = [
            Text(f"  {mark}", style=style),
            Text(challenge.name, style="name"),
            Text(level(marks, challenge.level)),
            Text(state(standing), style=style),
        ]
        cells += [Text(challenge.kind)] if screen.width >= WIDE else []
        table.add_row(*cells, Text(fit(challenge.title, max(title, 1), marks.dots)))
    return table


def _mark(standing: Standing, marks: Marks) -> tuple[str, str]:
    looks = {
        "solved": (marks.ok, "ok"),
        "tried": (marks.full, "warn"),
        "started": (marks.empty, "warn"),
        "new": (" ", ""),
    }
    return looks[standing.status]


def state(standing: Standing) -> str:
    """How far, in a word or two: "solved", "best 0.62", "started"."""
    return f"best {standing.best:.2f}" if standing.status == "tried" else standing.status


def _next(rows: tuple[Row, ...]) -> str:
    """The one that is under way, else the first that is new."""
    for status, verb in (("tried", "grade"), ("started", "grade"), ("new", "run")):
        for challenge, standing in rows:
            if standing.status == status:
                return f"attnlab {verb} {challenge.name}"
    return ""


def _document(challenge: Challenge, standing: Standing) -> Document:
    return {
        "slug": challenge.slug,
        "title": challenge.title,
        "kind": challenge.kind,
        "topic": challenge.topic,
        "level": challenge.level,
        "status": standing.status,
        "tries": standing.tries,
        "best": standing.best,
        "hints": standing.hints,
        "revealed": standing.revealed,
        "solution_seen": standing.solution_seen,
    }

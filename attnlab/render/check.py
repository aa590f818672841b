"""A validated catalogue: one row for each challenge, one line for each problem."""

from rich.table import Table
from rich.text import Text

from attnlab.catalogue.validate import Validation
from attnlab.records import plain, record
from attnlab.render.json import Document
from attnlab.render.screen import Screen, bare_table, plural


@record
class CheckPage:
    examined: tuple[Validation, ...]

    @property
    def problems(self) -> int:
        return sum(len(one.problems) for one in self.examined)

    def show(self, screen: Screen) -> None:
        marks = screen.marks
        if self.examined:
            screen.print(_table(self.examined, screen))
            screen.gap()
        for one in self.examined:
            for problem in one.problems:
                screen.say((f"{marks.bad} {one.slug} ", "bad"), problem)
        total = plural(len(self.examined), "challenge")
        if self.problems:
            screen.say((f"{marks.bad} {plural(self.problems, 'problem')}", "bad"), f" in {total}")
        else:
            screen.say((f"{marks.ok} {total} as they should be", "ok"))

    def document(self) -> Document:
        outcome = "found" if self.problems else "ok"
        return {"outcome": outcome, "challenges": plain(self.examined)}


def _table(examined: tuple[Validation, ...], screen: Screen) -> Table:
    marks = screen.marks
    titles = ("challenge", "shipped", "right", "others", "mutants", "texts")
    table = bare_table("", *titles)
    for one in examined:
        well = not one.problems
        mark = Text(marks.ok if well else marks.bad, style="ok" if well else "bad")
        table.add_row(mark, Text(one.slug, style="name"), *one.counts)
    return table

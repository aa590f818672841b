"""A lesson: step by step, with every number; and the list of lessons."""

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from attnlab.lessons.base import Cell, Grid, Lesson, Step
from attnlab.records import plain, record
from attnlab.render.json import Document
from attnlab.render.screen import Screen, bare_table

INDENT = 5  # of numbers
GAP = 6  # between two tables


@record
class LessonListPage:
    titles: dict[str, str]

    def show(self, screen: Screen) -> None:
        wide = max((len(name) for name in self.titles), default=0)
        for name, title in self.titles.items():
            screen.hang((f"{name:<{wide}}  ", "name"), title)
        screen.do_next(f"attnlab lesson {next(iter(self.titles), '')}")

    def document(self) -> Document:
        return {"lessons": [{"id": i, "title": t} for i, t in self.titles.items()]}


@record
class LessonPage:
    lesson: Lesson
    only: int = 0  # the number of one step, or 0 for all

    @property
    def steps(self) -> list[tuple[int, Step]]:
        numbered = list(enumerate(self.lesson.steps, 1))
        return [numbered[self.only - 1]] if self.only else numbered

    def show(self, screen: Screen) -> None:
        if not self.only:
            screen.say((self.lesson.title, "title"))
            screen.gap()
            screen.say(self.lesson.about)
        for number, step in self.steps:
            if number != self.only:
                screen.gap()
            _show_step(number, step, screen)
        more = f"attnlab lesson {self.lesson.id} --step {self.only + 1}"
        last = self.only in (0, len(self.lesson.steps))
        screen.do_next(self.lesson.next if last else more)

    def document(self) -> Document:
        return {
            "lesson": self.lesson.id,
            "title": self.lesson.title,
            "about": self.lesson.about,
            "steps": [{"number": number, **plain(step)} for number, step in self.steps],
        }


def _show_step(number: int, step: Step, screen: Screen) -> None:
    screen.say((f"{number}  {step.title}", "title"))
    if step.text:
        screen.say(step.text, indent=3)
    _show_lines(step.lines, screen)
    _show_grids(step.grids, screen)
    _show_lines(step.proof, screen)
    if step.after:
        screen.gap()
        screen.say(step.after, indent=3)
    for question in step.questions:
        screen.gap()
        screen.say((question.question, "title"), indent=3)
        screen.say(question.answer, indent=3)


def _show_lines(lines: tuple[str, ...], screen: Screen) -> None:
    if lines:
        screen.gap()
    for line in lines:
        screen.say((line, "name"), indent=INDENT)


def _show_grids(grids: tuple[Grid, ...], screen: Screen) -> None:
    """Side by side where they fit, else one below the other."""
    row: list[Table] = []
    for table in (_fit_table(grid, screen) for grid in grids):
        if row and _total_width([*row, table], screen) > screen.width:
            _show_row(row, screen)
            row = []
        row.append(table)
    _show_row(row, screen)


def _total_width(tables: list[Table], screen: Screen) -> int:
    return INDENT + sum(screen.measure(t).maximum for t in tables) + GAP * (len(tables) - 1)


def _show_row(tables: list[Table], screen: Screen) -> None:
    if not tables:
        return
    row = Table.grid(padding=(0, GAP, 0, 0))
    row.add_row(*tables)
    screen.gap()
    screen.print(Padding(row, (0, 0, 0, INDENT), expand=False))


def _fit_table(grid: Grid, screen: Screen) -> Table:
    """Columns move together where the table would be too wide."""
    table = _table(grid, 2)
    return table if _total_width([table], screen) <= screen.width else _table(grid, 1)


def _table(grid: Grid, gap: int) -> Table:
    heads = [Text(column) for column in grid.columns]
    table = bare_table(*heads, right=heads, gap=gap, header="dim")
    table.title = Text(grid.title) if grid.title else None
    table.title_justify, table.title_style = "left", ""
    for row in grid.rows:
        table.add_row(*(Text(_cell(cell, grid.digits)) for cell in row))
    return table


def _cell(cell: Cell, digits: int) -> str:
    return f"{cell:.{digits}f}" if isinstance(cell, float) else str(cell)

"""A module line by line: a heading for each line, then what it does, and why it is there."""

from rich.padding import Padding
from rich.text import Text

from attnlab.records import Crash, plain, record
from attnlab.records.walk import WalkRow, WalkStep
from attnlab.render.cost import format_count
from attnlab.render.findings import show_crash, show_notes
from attnlab.render.json import Document, pick
from attnlab.render.screen import ASCII, Screen, bare_table
from attnlab.render.steps import show_target
from attnlab.sizes import format_bytes

WIDE = 72  # cells from which on there is room for the cost


@record
class WalkPage:
    target: str
    outcome: str
    sizes: dict[str, int]
    steps: tuple[WalkStep, ...]
    crash: Crash | None = None
    message: str = ""
    notes: tuple[str, ...] = ()

    def show(self, screen: Screen) -> None:
        show_head(self, screen)
        for step in self.steps:
            screen.gap()
            show_source(step, screen)
            show_step(step, screen)
        show_end(self, screen)

    def document(self) -> Document:
        steps = {"steps": plain(self.steps)}
        return pick(self, "target", "outcome", "sizes", "message", "notes", "crash") | steps


def show_head(page: WalkPage, screen: Screen) -> None:
    show_target(page.target, page.sizes, screen, ("walk  ", "title"))


def show_end(page: WalkPage, screen: Screen) -> None:
    """What stopped it, and notes."""
    screen.gap()
    if not page.steps:
        screen.say("no operation ran: there is nothing to walk through")
    if page.crash:
        show_crash(page.crash, screen)
    elif page.message:
        screen.hang((f"{screen.marks.bad} ", "bad"), page.message)
    show_notes(tuple(dict.fromkeys(page.notes)), screen)


def show_source(step: WalkStep, screen: Screen) -> None:
    times = f"  {screen.marks.times}{step.times}" if step.times > 1 else ""
    screen.hang((f"{step.line:>4}  ", "name"), (step.source + times, "bold"))


def show_step(step: WalkStep, screen: Screen) -> None:
    """The operations of a line, then why it is there."""
    wide = screen.width >= WIDE
    table = bare_table("op", "axes", "memory", *(["cost"] if wide else []))
    table.show_header = False
    for row in step.rows:
        axes = Text(_axes(row, screen), style="name")
        cost = [_cost(row)] if wide else []
        table.add_row(row.op, axes, "view" if row.view else "", *cost)
    screen.print(Padding(table, (0, 0, 0, 6), expand=False))
    for row in step.rows:
        if row.does:
            screen.hang((f"      {row.op} ", "aside"), (row.does, "aside"))
    for text in step.without:
        screen.hang(("      without ", "warn"), text)
    for name, why in step.why.items():
        screen.hang((f"      {name}: ", "title"), why)


def _axes(row: WalkRow, screen: Screen) -> str:
    arrow = "->" if screen.marks is ASCII else "→"
    took = ", ".join(" ".join(axes) or "scalar" for axes in row.took)
    return f"{took} {arrow} {' '.join(row.axes) or 'scalar'}" if took else " ".join(row.axes)


def _cost(row: WalkRow) -> str:
    flops = f"{format_count(row.flops)} FLOPs" if row.flops else ""
    return ", ".join(part for part in (flops, format_bytes(row.bytes) if row.bytes else "") if part)

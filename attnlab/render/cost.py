"""What a module costs, in all and by module."""

from collections.abc import Sequence

from rich.padding import Padding
from rich.text import Text

from attnlab.records import record
from attnlab.records.cost import Cost, CostReport, ModuleCost
from attnlab.render.findings import show_notes
from attnlab.render.json import Document, pick
from attnlab.render.screen import Screen, bare_table, truncate
from attnlab.render.steps import show_target
from attnlab.sizes import format_bytes, scaled

SHORTEST = 8  # cells of a name


@record
class CostPage:
    target: str  # as it was asked for
    built: str
    outcome: str  # ok, crashed, timeout or memory
    cost: CostReport | None = None
    notes: tuple[str, ...] = ()
    message: str = ""
    next: str = ""

    def show(self, screen: Screen) -> None:
        report = self.cost
        sizes = report.sizes if report else {}
        show_target(self.built or self.target, sizes, screen, ("cost  ", "title"))
        if report is None:
            screen.gap()
            screen.hang((f"{screen.marks.bad} {self.outcome}  ", "bad"), self.message)
        else:
            screen.say((f"one forward pass, {report.how}", "aside"), indent=2)
            _show_costs(report.costs, screen)
            _show_modules(report.modules, screen)
            screen.gap()
            show_notes((*report.checks, *self.notes), screen)
        screen.do_next(self.next)

    def document(self) -> Document:
        return {**pick(self, "target", "built", "outcome", "cost", "notes", "message", "next")}


def format_count(n: int | None) -> str:
    """`1,234,567`, and from a billion on `1.234 G`; a number that is not known is `?`."""
    if n is None:
        return "?"
    return f"{n:,}" if n < 10**9 else f"{scaled(n, 'kMGTPEZYRQ', '.4g')}".rstrip()


def _value(cost: Cost) -> str:
    known = cost.unit == "bytes" and cost.value is not None
    return format_bytes(cost.value) if known else format_count(cost.value)


def _show_costs(costs: Sequence[Cost], screen: Screen) -> None:
    screen.gap()
    wide = max(len(_value(cost)) for cost in costs)
    title = max(len(cost.title) for cost in costs)
    for cost in costs:
        head = f"  {cost.title:<{title}}  "
        value = (f"{_value(cost):>{wide}}  ", "bold")
        if cost.formula:
            screen.hang((head, ""), value, (cost.formula, "name"))
        else:
            screen.hang((head, ""), value, (cost.note, "aside"))
        if cost.formula and cost.note:
            screen.hang(" " * (len(head) + wide + 2), (cost.note, "aside"))


def _show_modules(modules: Sequence[ModuleCost], screen: Screen) -> None:
    """A row for each; where they do not fit beside each other, formulas and names are cut, and
    numbers never."""
    if not modules:
        return
    screen.gap()
    total = sum(m.flops or 0 for m in modules) or 1
    heads = ["module", "", "parameters", "bytes", "FLOPs", "share", "formula of FLOPs"]
    rows = [
        (
            m.name or "(itself)",
            f"{screen.marks.times}{m.count}" if m.count > 1 else "",
            format_count(m.parameters),
            format_bytes(m.bytes) if m.bytes is not None else "?",
            "" if m.flops == 0 else format_count(m.flops),
            f"{m.flops / total:.0%}" if m.flops else "",
            "; ".join(part for part in (m.tied and f"tied to {m.tied}", m.formula) if part),
        )
        for m in modules
    ]
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    room = screen.width - 2 - sum(width + 2 for width in widths[1:-1])
    last = min(widths[-1], max(room - 2 - widths[0], len(heads[-1])))
    last = last if room - 2 - last >= SHORTEST else 0  # numbers first
    first = room - 2 - last if last else room
    table = bare_table(*(heads if last else heads[:-1]), right={*heads[1:-1]})
    for name, *numbers, formula in rows:
        cut = Text(truncate(formula, last, screen.marks.dots), style="name")
        cells = [_shorten(name, max(first, SHORTEST), screen.marks.dots), *numbers]
        table.add_row(*cells, *([cut] if last else []))
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))


def _shorten(name: str, width: int, dots: str) -> str:
    """The name without its beginning, as its end tells more."""
    return name if len(name) <= width else dots + name[len(name) - width + len(dots) :]

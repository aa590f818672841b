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
from attnlab.sizes import format_bytes

WIDE = 96  # cells from which on bytes of modules have room


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
        return {
            **pick(self, "target", "built", "outcome", "cost", "notes", "message", "next"),
        }


def format_count(n: int) -> str:
    """`1,234,567`, and from a billion on `1.234 G`."""
    for unit, step in (("P", 10**15), ("T", 10**12), ("G", 10**9)):
        if n >= step:
            return f"{n / step:.4g} {unit}" if n < 10**18 else f"{n:.4g}"
    return f"{n:,}"


def _value(cost: Cost) -> str:
    return format_bytes(cost.value) if cost.unit == "bytes" else format_count(cost.value)


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
    if not modules:
        return
    screen.gap()
    total = sum(m.flops for m in modules) or 1
    wide = screen.width >= WIDE
    heads = ["module", "", "parameters", *(["bytes"] if wide else []), "FLOPs", "share", "formula"]
    table = bare_table(*heads, right={"", "parameters", "bytes", "FLOPs", "share"})
    rows = [
        [
            m.name or "(itself)",
            f"{screen.marks.times}{m.count}" if m.count > 1 else "",
            format_count(m.parameters),
            *([format_bytes(m.bytes)] if wide else []),
            format_count(m.flops) if m.flops else "",
            f"{m.flops / total:.0%}" if m.flops else "",
            m.formula,
        ]
        for m in modules
    ]
    used = sum(max(len(r[i]) for r in [heads, *rows]) + 2 for i in range(len(heads) - 1)) + 2
    room = max(8, screen.width - used)
    for *cells, formula in rows:
        last = Text(truncate(formula, room, screen.marks.dots), style="name")
        table.add_row(*cells, last)
    screen.print(Padding(table, (0, 0, 0, 2), expand=False))

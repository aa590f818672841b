"""What each part of a module does: a row for each that was switched off."""

from dataclasses import replace

from rich.text import Text

from attnlab.records import record
from attnlab.records.ablation import Ablation, AblationReport
from attnlab.render.findings import show_hidden, show_notes
from attnlab.render.json import Document, pick
from attnlab.render.screen import ASCII, Screen, bare_table, plural, truncate

BAR = 10  # cells of a change as large as the output
NOTHING = 1e-6
NAME = 27  # cells of a part's name
LEFT_OF_LAST = NAME + 37  # of all columns but the last


@record
class AblationPage:
    target: str  # as it was asked for
    built: str
    outcome: str  # ok, found, crashed, timeout or memory
    report: AblationReport | None = None
    message: str = ""
    hint: str = ""
    next: str = ""
    hidden: int = 0  # findings that are left out, so as not to spoil a puzzle

    def without_findings(self) -> "AblationPage":
        """The same but for what would name the cause of a puzzle."""
        if self.report is None:
            return self
        parts = self.report.parts
        plain = [replace(p, is_finding=False, message="") if p.is_finding else p for p in parts]
        hidden = sum(part.is_finding for part in parts)
        return replace(self, report=replace(self.report, parts=tuple(plain)), hidden=hidden)

    def show(self, screen: Screen) -> None:
        screen.say(("ablate  ", "title"), (self.built or self.target, "name"))
        if self.report is None:
            screen.gap()
            screen.hang((f"{screen.marks.bad} {self.outcome}  ", "bad"), self.message)
            if self.hint:
                screen.say(self.hint, indent=2)
            return
        screen.say((_before(self.report), "aside"), indent=2)
        _show_findings(self.report, screen)
        _show_parts(self.report, screen)
        screen.gap()
        show_notes(self.report.notes, screen)
        show_hidden(self.hidden, screen)
        screen.do_next(self.next)

    def document(self) -> Document:
        return pick(
            self, "target", "built", "outcome", "report", "message", "hint", "hidden", "next"
        )


def _before(report: AblationReport) -> str:
    """What holds with every part on."""
    said = []
    if report.causal is not None:
        said.append("causal" if report.causal else "not causal")
    if report.ordered is not None:
        said.append("the order of positions matters" if report.ordered else "order does not matter")
    if report.loss is not None:
        said.append(f"loss {report.loss:.4g}")
    return f"with all parts on: {', '.join(said)}" if said else "one call for each part"


def _show_findings(report: AblationReport, screen: Screen) -> None:
    found = [part for part in report.parts if part.is_finding]
    if not found:
        return
    screen.gap()
    for part in found:
        place = f"{part.file}:{part.line}  " if part.line else ""
        screen.hang(
            (f"{screen.marks.warn} ", "warn"), (f"{place}{part.what}  ", "title"), part.message
        )


def _show_parts(report: AblationReport, screen: Screen) -> None:
    if not report.parts:
        return
    screen.gap()
    loss = ["loss"] if report.loss is not None else []
    table = bare_table("switched off", "line", "output", "", *loss, "what it broke", right={"line"})
    room = screen.width - LEFT_OF_LAST
    for part in report.parts:
        times = f" {screen.marks.times}{part.times}" if part.times > 1 else ""
        said = ", ".join(part.broke) or ("" if part.is_finding else part.message)
        table.add_row(
            truncate(part.what, NAME - len(times), screen.marks.dots) + times,
            str(part.line or ""),
            *_change(part, screen),
            *([f"{part.loss:.4g}" if part.loss is not None else ""] if loss else []),
            Text(truncate(said, room, screen.marks.dots), style="bad" if part.broke else "aside"),
        )
    screen.print(table)
    count = plural(len(report.parts), "part")
    says = f"{count}, one off at a time; output: RMS of its change, in RMS of the output"
    screen.say((says, "aside"))


def _change(part: Ablation, screen: Screen) -> tuple[Text, Text]:
    if part.change is None:
        return Text("raises", style="bad"), Text("")
    if part.is_finding and part.change < NOTHING:
        return Text("nothing", style="warn"), Text("")
    cells = round(BAR * min(part.change, 1.0))
    bar = ("#" if screen.marks is ASCII else "█") * cells
    return Text(f"{100 * part.change:.3g} %"), Text(bar, style="name")

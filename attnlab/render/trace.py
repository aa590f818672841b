"""One trace of any module: every operation, every finding, the crash, and what else was asked."""

from collections.abc import Sequence

from attnlab.records import Guard, Report, Trace, record
from attnlab.render.findings import (
    show_failure_end,
    show_findings,
    show_hidden,
    show_notes,
    show_output,
)
from attnlab.render.fold import View
from attnlab.render.formats import file_labels, format_place
from attnlab.render.json import Document, pick, trace_rows
from attnlab.render.screen import Screen, escape_control, plural, truncate
from attnlab.render.steps import show_table, show_target
from attnlab.target.trace_advice import omission


@record
class TracePage:
    target: str  # as it was asked for
    outcome: str  # ok, found, crashed, timeout or memory
    report: Report
    sizes: dict[str, int]
    containers: tuple[str, ...] = ()  # of inputs: "cache: (B H T hd, B H T hd)"
    view: View = View()
    hidden: int = 0  # findings that are left out of the report, so as not to spoil a puzzle
    omitted: Sequence[str] = ()  # arguments of forward that were None, as --input would give them
    next: str = ""
    code: Sequence[tuple[str, str]] = ()  # texts of files, by the names that rows have for them

    def show(self, screen: Screen) -> None:
        trace = self.report.trace or Trace()
        show_target(self.report.target or self.target, self.sizes, screen, ("trace  ", "title"))
        for said in self.containers:
            name, _, held = said.partition(": ")
            screen.hang((f"       {name}: ", "aside"), (held, "name"))
        # With nothing to show of --only-findings the last line says so.
        empty = self.view.only_findings and not (trace.findings or trace.crash)
        if not empty and (trace.ops or trace.crash or self.outcome == "ok"):
            show_table(trace, screen, self.view)
        _show_calls(trace, screen, self.view)
        left = [f"not looked at: {omission(self.omitted)}"] if self.omitted and trace.ops else []
        show_notes((*trace.notes, *left), screen)
        _show_views(trace, screen)
        show_failure_end(trace, self.report, screen)
        show_output(self.report.output, screen)
        if trace.findings:
            screen.gap()
            show_findings(trace.findings, screen, file_labels(trace, self.view.file))
        show_hidden(self.hidden, screen)
        _show_end(self, trace, screen)
        screen.do_next(self.next)

    def document(self) -> Document:
        trace = self.report.trace or Trace()
        return {
            **pick(self, "target", "outcome"),
            **trace_rows(self.report.trace),
            "calls": [pick(call, "number", "total", "inputs") for call in trace.calls],
            "hidden_findings": self.hidden,
            **pick(trace, "backward", "attention", "values", "guards", "compilation"),
            "omitted": list(self.omitted),
            "built": self.report.target,
            "sizes": self.sizes,
            **pick(self.report, "message", "seconds", "seed", "output"),
            "next": self.next,
        }


def _show_calls(trace: Trace, screen: Screen, view: View) -> None:
    """The calls after the first, one table each; one that only repeats is said in a line."""
    before = [(op.line, op.op, op.shape) for op in trace.ops]
    for call in trace.calls:
        rows = [(op.line, op.op, op.shape) for op in call.trace.ops]
        screen.gap()
        head = f"call {call.number} of {call.total}"
        told = f": {call.inputs}" if call.inputs else ""
        if rows == before and not call.trace.crash:
            screen.say((head, "title"), f"{told}  the same rows as the call before")
            continue
        screen.say((head, "title"), told)
        show_table(call.trace, screen, view)
        before = rows


def _show_views(trace: Trace, screen: Screen) -> None:
    """What was asked for beyond the rows; only that is imported."""
    if trace.values:
        from attnlab.render.heat import show_values

        show_values(trace.values, screen)
    if trace.attention:
        from attnlab.render.attention import show_attention

        show_attention(trace.attention, trace.ops, screen)
    if trace.backward:
        from attnlab.render.gradients import show_backward

        show_backward(trace.backward, trace.ops, screen)
    if trace.guards:
        _show_guards(trace.guards, screen)
    if trace.compilation:
        from attnlab.render.compilation import show_compilation

        show_compilation(trace.compilation, screen)


def _show_guards(guards: Sequence[Guard], screen: Screen) -> None:
    """The relations of sizes that the run depends on, as symbolic shapes found them."""
    screen.gap()
    screen.say(
        ("sizes", "title"), f"  the run depends on {plural(len(guards), 'relation')} of sizes:"
    )
    wide = max(len(guard.relation) for guard in guards)
    spots = [format_place(guard.file, guard.line) if guard.line else "" for guard in guards]
    far = max(len(spot) for spot in spots)
    for guard, spot in zip(guards, spots, strict=True):
        rest = f"{spot:<{far}}  {guard.op}  " if guard.op else f"{spot:<{far}}  "
        room = max(0, screen.width - wide - len(rest) - 4)
        source = truncate(escape_control(guard.source), room, screen.marks.dots)
        screen.one_line((f"  {guard.relation:<{wide}}  ", "name"), rest, (source, "aside"))


def _show_end(page: TracePage, trace: Trace, screen: Screen) -> None:
    marks = screen.marks
    if trace.ops or trace.crash or page.outcome in ("ok", "found"):
        screen.gap()
    count = plural(len(trace.ops), "operation")
    notes = len(trace.findings) or page.hidden
    if page.outcome == "ok" and notes:
        screen.say((f"{marks.note} {plural(notes, 'note')}", "bold"), f"  in {count}")
    elif page.outcome == "ok":
        screen.say((f"{marks.ok} nothing suspicious", "ok"), f"  in the axes and flow of {count}")
    elif page.outcome == "found":
        grave = len(trace.grave) or page.hidden
        screen.say((f"{marks.warn} {plural(grave, 'finding')}", "warn"), f"  in {count}")
    elif trace.crash or trace.ops:
        ran = len(trace.ops) + sum(len(call.trace.ops) for call in trace.calls)
        screen.say((f"{marks.bad} {page.outcome}", "bad"), f"  after {plural(ran, 'operation')}")

"""One trace of any module: every operation, every finding, the crash."""

from __future__ import annotations

from attnlab.records import Report, Trace, record
from attnlab.render.json import Document, trace_rows
from attnlab.render.run import show_output
from attnlab.render.screen import Screen, plural
from attnlab.render.steps import show_end, show_findings, show_notes, show_table, show_target


@record
class Traced:
    target: str  # as it was asked for
    outcome: str  # ok, found, crashed, timeout or memory
    report: Report
    sizes: dict[str, int]

    def show(self, screen: Screen) -> None:
        trace = self.report.trace or Trace()
        show_target(self.report.target or self.target, self.sizes, screen, ("trace  ", "title"))
        show_table(trace, screen)
        show_notes(trace.notes, screen)
        show_end(trace, self.report, screen)
        show_output(self.report.output, screen)
        if trace.findings:
            screen.gap()
            show_findings(trace.findings, screen)
        _show_end(self, trace, screen)

    def document(self) -> Document:
        return {
            "target": self.target,
            "outcome": self.outcome,
            **trace_rows(self.report.trace),
            "built": self.report.target,
            "sizes": self.sizes,
            "message": self.report.message,
            "seconds": self.report.seconds,
            "seed": self.report.seed,
            "output": self.report.output,
        }


def _show_end(page: Traced, trace: Trace, screen: Screen) -> None:
    marks = screen.marks
    screen.gap()
    count = plural(len(trace.ops), "operation")
    if page.outcome == "ok":
        screen.say((f"{marks.ok} ok", "ok"), f"  {count}, nothing suspicious found")
    elif page.outcome == "found":
        grave = sum(f.severity != "note" for f in trace.findings)
        screen.say((f"{marks.warn} {plural(grave, 'finding')}", "warn"), f"  in {count}")
    else:
        screen.say((f"{marks.bad} {page.outcome}", "bad"), f"  after {count}")

"""One property that does not hold in a user's own test: the sentence, the place, the rows."""

from dataclasses import replace

from attnlab.errors import PropertyFailed
from attnlab.records import CheckResult, Trace, plain, record
from attnlab.records.diagnosis import DiffReport
from attnlab.render.diff import show_diagnosis, show_steps
from attnlab.render.findings import show_findings
from attnlab.render.fold import View
from attnlab.render.formats import file_labels
from attnlab.render.json import Document, trace_rows
from attnlab.render.screen import Screen, plain_text, plural
from attnlab.render.steps import show_table

ROWS = 40  # of more, the first ones are shown


@record
class PropertyPage:
    """A check that failed, and one call of the module at the sizes where it did."""

    result: CheckResult
    target: str  # "Net.forward, model.py:12"
    seed: int
    trace: Trace | None = None
    diff: DiffReport | None = None  # from the reference, where there is one

    def show(self, screen: Screen) -> None:
        result = self.result
        sizes = " ".join(f"{name}={size}" for name, size in result.sizes.items())
        place = f"{result.file}:{result.line}" if result.line else ""
        parts = (place or self.target, sizes, f"seed {self.seed}")
        screen.say("  ".join(part for part in parts if part))
        if self.diff and self.diff.diagnosis:
            for each in self.diff.diagnosis:
                screen.gap()
                show_diagnosis(each, screen)
            show_steps(self.diff, screen)
        elif self.trace and (self.trace.ops or self.trace.crash):
            screen.gap()
            self._show_rows(self.trace, screen)
        screen.do_next(result.advice)

    def _show_rows(self, trace: Trace, screen: Screen) -> None:
        show_table(replace(trace, ops=trace.ops[:ROWS]), screen, View())
        if len(trace.ops) > ROWS:
            screen.say((f"and {plural(len(trace.ops) - ROWS, 'operation')} more", "aside"))
        if trace.grave:
            screen.gap()
            show_findings(trace.grave, screen, file_labels(trace))

    def document(self) -> Document:
        diagnosis = plain(self.diff.diagnosis) if self.diff else []
        found = {"check": plain(self.result), "seed": self.seed, "diagnosis": diagnosis}
        return {**found, **trace_rows(self.trace)}


def as_text(page: PropertyPage, width: int = PropertyFailed.width) -> str:
    """The page without colours, for an exception's message."""
    return plain_text(page.show, width)

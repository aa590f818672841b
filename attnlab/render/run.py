"""One run of a challenge: its task, the trace, the checks, what to do next."""

from attnlab.records import Challenge, Report, Trace, Verdict, plain, record
from attnlab.render.challenge import show_head
from attnlab.render.checks import outcome_counts
from attnlab.render.findings import (
    show_failure_end,
    show_findings,
    show_hidden,
    show_notes,
    show_output,
)
from attnlab.render.json import Document, pick, trace_rows
from attnlab.render.screen import Screen
from attnlab.render.steps import show_table, show_target


@record
class RunPage:
    challenge: Challenge
    file: str  # in few words
    verdict: Verdict
    report: Report
    trace: Trace  # without the findings that name a cause, where these are hidden
    hidden: int  # how many they are
    next: str

    def show(self, screen: Screen) -> None:
        show_head(self.challenge, screen, self.file)
        for title, text in (("symptom", self.challenge.symptom), ("task", self.challenge.task)):
            screen.heading(title, text)
        screen.gap()
        screen.say(("attnlab explain rules shows what every challenge asks", "aside"), indent=2)
        _show_trace(self, screen)
        _show_checks(self, screen)
        screen.do_next(self.next)

    def document(self) -> Document:
        verdict = self.verdict
        return {
            "challenge": self.challenge.slug,
            **pick(verdict, "file", "outcome", "score", "message"),
            "target": self.report.target,
            **trace_rows(self.trace),
            "hidden_findings": self.hidden,
            "checks": plain(verdict.checks),
            "diagnosis": [],  # as for `attnlab grade`
            **pick(verdict, "isolation", "seconds", "seed"),
            "output": self.report.output,
            "next": self.next,
        }


def _show_trace(page: RunPage, screen: Screen) -> None:
    screen.gap()
    head = ("trace  ", "title")
    show_target(page.report.target, page.challenge.contract.sizes, screen, head)
    show_table(page.trace, screen)
    show_notes(page.trace.notes, screen)
    show_failure_end(page.trace, page.report, screen)
    show_output(page.report.output, screen)
    if page.trace.findings:
        screen.gap()
        show_findings(page.trace.findings, screen)
    show_hidden(page.hidden, screen)


def _show_checks(page: RunPage, screen: Screen) -> None:
    parts = outcome_counts(page.verdict.checks, screen)
    if parts:
        screen.gap()
        screen.say(("checks  ", "title"), *parts)
    first = next((c for c in page.verdict.checks if c.outcome == "failed"), None)
    if first:
        screen.say(("first failed: ", "bad"), f"{first.id}  {first.title}", indent=2)

"""Pages of commands as they are made in this process, for a Python prompt and a notebook."""

from collections.abc import Mapping

from attnlab.records import LiveReport, Report, Trace, Triage
from attnlab.records.diagnosis import DiffReport
from attnlab.render.diff import DiffPage
from attnlab.render.json import Page
from attnlab.render.screen import plain_text
from attnlab.render.trace import TracePage
from attnlab.render.triage import TriagePage
from attnlab.render.verify import VerifyPage

WIDTH = 100


def trace_page(trace: Trace, sizes: Mapping[str, int], target: str) -> TracePage:
    """The page of a trace that was made in this process."""
    report = Report(outcome="ok", trace=trace, target=target)
    return TracePage(target=target, outcome=trace.outcome, report=report, sizes=dict(sizes))


def verify_page(found: LiveReport, target: str) -> VerifyPage:
    """The page of properties that were looked at in this process."""
    failed = any(check.outcome == "failed" for check in found.checks)
    outcome = "failed" if failed else "passed"
    return VerifyPage(
        target=target, built=target, outcome=outcome, promises=found.promises, checks=found.checks
    )


def triage_page(found: Triage, report: Report) -> TriagePage:
    """The page of causes that were looked for in this process."""
    return TriagePage(triage=found, report=report)


def diff_page(found: DiffReport, target: str, reference: str) -> DiffPage:
    """The page of two modules that were compared in this process."""
    return DiffPage(target=target, reference=reference, outcome=found.outcome, report=found)


def as_text(page: Page, width: int = WIDTH) -> str:
    """The page without colours, for `print` and for a terminal's prompt."""
    return plain_text(page.show, width)

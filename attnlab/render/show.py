"""Pages of commands as text and as HTML, for a Python prompt and a notebook."""

import html as escaping
import io
from collections.abc import Mapping

from rich.terminal_theme import TerminalTheme

from attnlab.records import LiveReport, Report, Trace, Triage
from attnlab.records.diagnosis import DiffReport
from attnlab.render.diff import DiffPage
from attnlab.render.json import Page
from attnlab.render.screen import Screen, plain_text
from attnlab.render.trace import TracePage
from attnlab.render.triage import TriagePage
from attnlab.render.verify import VerifyPage

WIDTH = 100
# Eight colours that read on white and on black: the notebook's theme is unknown.
EIGHT_COLORS = [
    *((0x55, 0x55, 0x55), (0xD3, 0x30, 0x2F), (0x2E, 0x8B, 0x3D), (0xA8, 0x70, 0x10)),
    *((0x3B, 0x78, 0xD8), (0xB8, 0x3C, 0xA6), (0x0A, 0x8E, 0xA0), (0x88, 0x88, 0x88)),
]
NEUTRAL_THEME = TerminalTheme((0xFF, 0xFF, 0xFF), (0x22, 0x22, 0x22), EIGHT_COLORS, EIGHT_COLORS)
# The notebook's own font size and colours; a wide table scrolls and does not wrap.
FRAME = (
    '<pre style="white-space: pre; overflow-x: auto; line-height: 1.25; '
    "font-family: 'DejaVu Sans Mono', Menlo, Consolas, monospace\" "
    'aria-label="{label}">{{code}}</pre>'
)


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
    return DiffPage(
        target=target, reference=reference, built=target, outcome=found.outcome, report=found
    )


def as_text(page: Page, width: int = WIDTH) -> str:
    """The page without colours, for `print` and for a terminal's prompt."""
    return plain_text(page.show, width)


def as_html(page: Page, label: str, width: int = WIDTH) -> str:
    """The page with colours, for the cell of a notebook; `label` is for a reader of screens."""
    screen = Screen(file=io.StringIO(), width=width, record=True, color=True, many=True)
    page.show(screen)
    label = escaping.escape(label).replace("{", "{{").replace("}", "}}")  # the frame is a format
    frame = FRAME.format(label=label)
    return screen.export_html(theme=NEUTRAL_THEME, inline_styles=True, code_format=frame)

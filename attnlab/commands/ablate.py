from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.commands.base import NOT_COMPARED, Json, Timeout, limits, note_reveal, run_job
from attnlab.commands.output import Html, emit_also
from attnlab.commands.target_flags import (
    OWN_TIME,
    NamedTarget,
    Reveal,
    next_of_puzzle,
    takes_target,
)

if TYPE_CHECKING:
    from attnlab.records import Report

PLACE = 104


@takes_target
def command(
    named: NamedTarget,
    timeout: Timeout = "",
    reveal: Reveal = False,
    html: Html = "",
    json: Json = False,
) -> int:
    """Switch off each part of a module, and say what that changes.

    Masks, positions, norms, residuals, dropout, heads, blocks: the file stays as it is, the call is
    repeated with the part passing on what it gets. A part that changes nothing is a finding.
    """
    from dataclasses import replace

    from attnlab.render.ablation import AblationPage

    job = replace(named.job(limits(timeout or OWN_TIME, "")), stages=("ablation",))
    named.announce("ablating", job)
    report = run_job(job)
    parts = report.ablation.parts if report.ablation else ()
    found = next((part for part in parts if part.is_finding), None)
    page = AblationPage(
        target=named.name,
        built=report.target,
        outcome=_outcome(report),
        report=report.ablation,
        message=report.message,
        hint=report.hint,
        next=f"look at {found.file}:{found.line}" if found and found.line else "",
    )
    if chosen := named.chosen:
        solved = note_reveal(chosen, found, reveal)
        page = replace(page, next=next_of_puzzle(chosen, found is None, solved))
        page = page if solved or reveal else page.without_findings()
    code = {"ok": 0, "cannot-compare": NOT_COMPARED}.get(page.outcome, 1)
    return emit_also(page, json, code, html)


def _outcome(report: Report) -> str:
    """`found` where a part changes nothing, or dropout is on in eval mode."""
    if report.outcome != "ok" or report.ablation is None:
        return report.outcome
    if not report.ablation.parts:
        return "cannot-compare"
    return "found" if any(part.is_finding for part in report.ablation.parts) else "ok"

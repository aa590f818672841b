from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from attnlab.commands.base import (
    NOT_COMPARED,
    Json,
    Timeout,
    catalogue,
    emit,
    limits,
    note_reveal,
    run_job,
)
from attnlab.commands.trace import (
    OWN_TIME,
    Case,
    Init,
    Inputs,
    Reveal,
    Sizes,
    Target,
    announce_own,
    answer_of,
    find_challenge,
    next_of_puzzle,
)

if TYPE_CHECKING:
    from attnlab.records import Report

PLACE = 104


def command(
    ctx: typer.Context,
    target: Target,
    init: Init = None,
    sizes: Sizes = None,
    inputs: Inputs = None,
    case: Case = "",
    timeout: Timeout = "",
    reveal: Reveal = False,
    json: Json = False,
) -> int:
    """Switch off each part of a module in turn, and say what that changes.

    Masks, positions, norms, residuals, dropout, heads, blocks: the file stays as it is, the call is
    repeated with the part passing on what it gets. A part that changes nothing is a finding.
    """
    from dataclasses import replace

    from attnlab.render.ablation import AblationPage
    from attnlab.target.resolve import own_job
    from attnlab.target.rounds import typed_command

    typed = typed_command(catalogue(ctx), target, (init, sizes, inputs, case), (), "ablate")
    chosen = find_challenge(ctx, typed.target)
    answer = answer_of(chosen, typed.target)
    job = own_job(typed, limits=limits(timeout or OWN_TIME, ""), answer=answer)
    job = replace(job, stages=("ablation",))
    announce_own("ablating", typed, job, answer)
    report = run_job(job)
    parts = report.ablation.parts if report.ablation else ()
    found = next((part for part in parts if part.is_finding), None)
    page = AblationPage(
        target=target,
        built=report.target,
        outcome=_outcome(report),
        report=report.ablation,
        message=report.message,
        hint=report.hint,
        next=f"look at {found.file}:{found.line}" if found and found.line else "",
    )
    if chosen:
        solved = note_reveal(chosen, found, reveal)
        page = replace(page, next=next_of_puzzle(chosen, found is None, solved))
        page = page if solved or reveal else page.without_findings()
    return emit(page, json, {"ok": 0, "cannot-compare": NOT_COMPARED}.get(page.outcome, 1))


def _outcome(report: Report) -> str:
    """`found` where a part changes nothing, or dropout is on in eval mode."""
    if report.outcome != "ok" or report.ablation is None:
        return report.outcome
    if not report.ablation.parts:
        return "cannot-compare"
    return "found" if any(part.is_finding for part in report.ablation.parts) else "ok"

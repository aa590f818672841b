from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import NOT_COMPARED, Json, Timeout, limits, note_reveal, run_job
from attnlab.commands.output import Format, Html, emit_also
from attnlab.commands.target_flags import (
    OWN_TIME,
    NamedTarget,
    Reveal,
    next_of_puzzle,
    takes_target,
)

if TYPE_CHECKING:
    from attnlab.records import CheckResult, Report

PLACE = 106
NOTHING = "no property could be looked at: above stands why of each"
Promises = Annotated[
    list[str] | None,
    typer.Option(
        "--promise", metavar="NAME", help="It also promises this: causal, ordered, batch-first ..."
    ),
]
Not = Annotated[
    list[str] | None,
    typer.Option("--not", metavar="NAME", help="It does not promise this, or this property."),
]


@takes_target
def command(
    named: NamedTarget,
    promise: Promises = None,
    unpromised: Not = None,
    timeout: Timeout = "",
    reveal: Reveal = False,
    html: Html = "",
    form: Format = "",
    json: Json = False,
) -> int:
    """Check what a module promises: causality, masks, padding, order.

    No reference is needed. The module is called again with inputs changed along one axis. What it
    promises is read off what it does; --promise and --not correct that.
    """
    from dataclasses import replace

    from attnlab.render.verify import VerifyPage
    from attnlab.target.command_line import repeated_flags
    from attnlab.target.promises import layout_promises, parse_names
    from attnlab.target.trace_advice import untried_inputs
    from attnlab.target.triage_target import with_demo

    promised, denied = parse_names(promise or (), unpromised or ())
    flags = [w for n in promised for w in ("--promise", n)]
    flags += [w for n in denied for w in ("--not", n)]
    named = named.repeating(*flags, *repeated_flags((), {"--timeout": timeout}))
    typed, chosen = named.typed, named.chosen
    job = named.job(limits(timeout or OWN_TIME, ""))
    promised = (*promised, *layout_promises(typed.inputs))
    job = replace(job, stages=("trace", "check"), promised=promised, unpromised=denied)
    named.announce("verifying", job)
    report = with_demo(typed, job, run_job(job), run_job)
    outcome = _outcome(report)
    at = next((c for c in report.checks if c.outcome == "failed" and c.line), None)
    page = VerifyPage(
        target=named.name,
        built=report.target,
        outcome=outcome,
        promises=report.promises,
        checks=report.checks,
        message=_message(report),
        notes=untried_inputs(job),
        seconds=report.seconds,
        next=f"look at {at.file}:{at.line}, then {typed.command()}" if at else "",
    )
    if chosen:
        broken = sum(c.outcome == "failed" and bool(c.line) for c in report.checks)
        solved = note_reveal(chosen, at, reveal)
        page = replace(page, next=next_of_puzzle(chosen, outcome == "passed", solved))
        if not (solved or reveal):
            page = replace(page, checks=tuple(map(_without_line, page.checks)), hidden=broken)
    return emit_also(page, json, {"passed": 0, "error": NOT_COMPARED}.get(outcome, 1), html, form)


def _without_line(check: CheckResult) -> CheckResult:
    """A property without the line that breaks it, which would spoil a puzzle."""
    from dataclasses import replace

    return replace(check, file="", line=None)


def _outcome(report: Report) -> str:
    if report.outcome != "ok":
        return report.outcome
    if report.trace and report.trace.crash:
        return "crashed"
    known = {c.outcome for c in report.checks}
    return "failed" if "failed" in known else "passed" if "passed" in known else "error"


def _message(report: Report) -> str:
    """Why no property was looked at, or "" where they were."""
    crash = report.trace.crash if report.trace else None
    if crash:
        return f"{crash.file}:{crash.line}: {crash.error}: {crash.message}"
    if all(c.outcome not in ("passed", "failed") for c in report.checks):
        return report.message or NOTHING
    return report.message

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, Timeout, emit, limits, note, run_job
from attnlab.commands.trace import OWN_TIME, Case, Init, Inputs, Sizes, Target

if TYPE_CHECKING:
    from attnlab.records import Report

PLACE = 106
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


def command(
    target: Target,
    init: Init = "",
    sizes: Sizes = "",
    inputs: Inputs = None,
    case: Case = "",
    promise: Promises = None,
    unpromised: Not = None,
    timeout: Timeout = "",
    json: Json = False,
) -> int:
    """Check what a module of your own promises: causality, masks, padding, batch, order.

    No reference is needed. The module is called again with inputs changed along one axis. What it
    promises is read off what it does; --promise and --not correct that.
    """
    from dataclasses import replace

    from attnlab.render.verify import VerifyPage
    from attnlab.target.command_line import TraceCommand, repeated_flags
    from attnlab.target.promises import layout_promises, parse_names
    from attnlab.target.resolve import own_job
    from attnlab.target.trace_advice import guessed_inputs

    promised, denied = parse_names(promise or (), unpromised or ())
    flags = [w for n in promised for w in ("--promise", n)]
    flags += [w for n in denied for w in ("--not", n)]
    typed = TraceCommand(
        target=target,
        init=init,
        sizes=sizes,
        inputs=tuple(inputs or ()),
        case=case,
        rest=(*flags, *repeated_flags((), {"--timeout": timeout})),
        verb="verify",
    )
    job = own_job(typed, limits=limits(timeout or OWN_TIME, ""))
    promised = (*promised, *layout_promises(typed.inputs))
    job = replace(job, stages=("trace", "check"), promised=promised, unpromised=denied)
    note(f"verifying {target} (your own code: under limits, not isolated)")
    if fed := ", ".join(f'"{entry}"' for entry in guessed_inputs(typed, job)):
        note(f"inputs guessed: {fed}; --input changes them")
    report = run_job(job)
    outcome = _outcome(report)
    at = next((c for c in report.checks if c.outcome == "failed" and c.line), None)
    page = VerifyPage(
        target=target,
        built=report.target,
        outcome=outcome,
        promises=report.promises,
        checks=report.checks,
        message=_message(report),
        seconds=report.seconds,
        next=f"look at {at.file}:{at.line}, then {typed.command()}" if at else "",
    )
    return emit(page, json, 0 if outcome == "passed" else 1)


def _outcome(report: Report) -> str:
    if report.outcome != "ok":
        return report.outcome
    if report.trace and report.trace.crash:
        return "crashed"
    return "failed" if any(c.outcome == "failed" for c in report.checks) else "passed"


def _message(report: Report) -> str:
    """Why no property was looked at, or "" where they were."""
    crash = report.trace.crash if report.trace else None
    if crash:
        return f"{crash.file}:{crash.line}: {crash.error}: {crash.message}"
    return report.message

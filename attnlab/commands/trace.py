from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import (
    Json,
    Memory,
    Timeout,
    announce,
    catalogue,
    choose,
    complete_slug,
    emit,
    inspect,
    job_for,
    limits,
    looks_like_path,
    note,
)

if TYPE_CHECKING:
    from attnlab.records import Job, Limits, Report

PLACE = 100
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="file.py:Class, file.py, package.module:Class, or a challenge.",
        autocompletion=complete_slug,
    ),
]
Init = Annotated[
    str, typer.Option("--init", metavar="ARGS", help='How to build it: "embed_dim=D, num_heads=H".')
]
Sizes = Annotated[
    str, typer.Option("--sizes", metavar="SIZES", help='What symbols mean: "B=2, S=4, D=8, H=2".')
]
Inputs = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="INPUT", help='How to feed it: "x: B S D"; once for each.'),
]
Case = Annotated[
    str, typer.Option("--case", metavar="FILE", help="A TOML file with [sizes] [init] [inputs].")
]


def command(
    ctx: typer.Context,
    target: Target,
    init: Init = "",
    sizes: Sizes = "",
    inputs: Inputs = None,
    case: Case = "",
    timeout: Timeout = "",
    memory: Memory = "",
    json: Json = False,
) -> int:
    """Trace any module: each step, and what is odd about it.

    For every operation: its source line, the shape with the names of its axes, the range of its
    values. A file with a demo or with one module needs no more than its name.
    """
    from attnlab.render.trace import Traced
    from attnlab.target import own_job

    bounds = limits(timeout, memory)
    told = bool(init or sizes or inputs or case)
    job = None if told else _challenge_job(ctx, target, bounds)
    if job is None:
        path = Path(case) if case else None
        job = own_job(target, init=init, sizes=sizes, inputs=inputs or (), case=path, limits=bounds)
        note(f"tracing {target} (your own code: under limits, not isolated)")
        if job.contract and job.contract.inputs and not (inputs or case):
            fed = ", ".join(f'"{i.name}: {" ".join(i.axes)}"' for i in job.contract.inputs)
            note(f"fed by guess: {fed}; --input says it otherwise")
    report = inspect(job)
    outcome = _outcome(report)
    sizes_used = job.contract.sizes if job.contract else {}
    page = Traced(target=target, outcome=outcome, report=report, sizes=sizes_used)
    return emit(page, json, 0 if outcome == "ok" else 1)


def _challenge_job(ctx: typer.Context, target: str, bounds: Limits) -> Job | None:
    """The job of a challenge's slug or of a started file; None for code of one's own."""
    from attnlab.target import marked_slug, read_source

    if looks_like_path(target):
        plain = target.endswith(".py") and Path(target).is_file()
        if not plain or marked_slug(read_source(Path(target)).text) is None:
            return None
    elif ":" in target or "." in target or not _is_slug(ctx, target):
        return None
    chosen = choose(ctx, target)
    announce("tracing", chosen)
    return job_for(chosen, bounds, "trace")


def _is_slug(ctx: typer.Context, target: str) -> bool:
    return any(target in (c.slug, c.name) for c in catalogue(ctx).challenges)


def _outcome(report: Report) -> str:
    from attnlab.records import Trace

    if report.outcome in ("timeout", "memory", "crashed"):
        return report.outcome
    trace = report.trace or Trace()
    if trace.crash:
        return "crashed"
    grave = any(finding.severity != "note" for finding in trace.findings)
    return "found" if grave else "ok"

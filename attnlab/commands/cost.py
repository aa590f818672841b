from __future__ import annotations

from typing import Annotated

import typer

from attnlab.commands.base import Json, Timeout, emit, limits, run_job
from attnlab.commands.target_flags import OWN_TIME, NamedTarget, takes_target
from attnlab.commands.trace import Dtype, Most

PLACE = 107
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="SIZES", help='Count at these sizes: "S=4096, B=8".'),
]


@takes_target
def command(
    named: NamedTarget,
    at: At = None,
    dtype: Dtype = "float32",
    timeout: Timeout = "",
    max_memory: Most = "",
    json: Json = False,
) -> int:
    """Count parameters, FLOPs, S x S memory and KV cache.

    Of one forward pass, in all and by module. Formulas are solved from runs at several sizes, and
    tried at one more. With --at large tensors have no data, so that any sizes will do.
    """
    from dataclasses import replace

    from attnlab.records import TraceOptions
    from attnlab.render.cost import CostPage
    from attnlab.target import options as flags
    from attnlab.target.resolve import with_at

    named = named.repeating(*(word for text in at or () for word in ("--at", text)))
    bounds = limits(timeout or OWN_TIME, max_memory, "--max-memory")
    job = named.job(bounds, TraceOptions(dtype=flags.parse_dtype(dtype)))
    job = with_at(replace(job, stages=("cost",)), at)
    named.announce("counting", job, fed=False)
    report = run_job(job)
    crash = report.trace.crash if report.trace else None
    outcome = report.outcome if report.outcome != "ok" else "crashed" if crash else "ok"
    again = replace(named.typed, verb="trace", rest=()).command()
    guess = named.guess(job)  # on the page: stderr is seldom read beside it
    page = CostPage(
        target=named.name,
        built=report.target,
        outcome=outcome,
        cost=report.cost,
        notes=(*report.trace.notes, *([guess] if guess else [])) if report.trace else (),
        message=f"{crash.file}:{crash.line}: {crash.error}: {crash.message}"
        if crash
        else report.message,
        next=f"{again} explains it{'; ' * bool(guess)}{guess}" if crash else "",
    )
    return emit(page, json, 0 if outcome == "ok" else 1)

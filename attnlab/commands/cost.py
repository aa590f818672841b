from __future__ import annotations

from typing import Annotated

import typer

from attnlab.commands.base import Json, Timeout, catalogue, emit, limits, run_job
from attnlab.commands.trace import (
    OWN_TIME,
    Case,
    Dtype,
    Init,
    Inputs,
    Most,
    Sizes,
    Target,
    announce_own,
    answer_of,
    find_challenge,
)

PLACE = 107
At = Annotated[
    str, typer.Option("--at", metavar="SIZES", help='Count at these sizes: "S=4096, B=8".')
]


def command(
    ctx: typer.Context,
    target: Target,
    init: Init = None,
    sizes: Sizes = None,
    inputs: Inputs = None,
    case: Case = "",
    at: At = "",
    dtype: Dtype = "float32",
    timeout: Timeout = "",
    max_memory: Most = "",
    json: Json = False,
) -> int:
    """Count what a module costs: parameters, bytes, FLOPs, S x S memory, KV cache.

    Of one forward pass, in all and by module, each with its formula in the names of axes. With
    --at tensors have no data, so that any sizes will do.
    """
    from dataclasses import replace

    from attnlab.records import TraceOptions
    from attnlab.render.cost import CostPage
    from attnlab.target import options as flags
    from attnlab.target.command_line import TraceCommand, repeated_flags
    from attnlab.target.resolve import own_job, with_at
    from attnlab.target.rounds import training_script

    typed = TraceCommand(
        target=training_script(catalogue(ctx), target),
        init=", ".join(init or ()),
        sizes=", ".join(sizes or ()),
        inputs=tuple(inputs or ()),
        case=case,
        rest=repeated_flags((), {"--at": at}),
        verb="cost",
    )
    answer = answer_of(find_challenge(ctx, typed.target), typed.target)
    job = own_job(
        typed,
        limits=limits(timeout or OWN_TIME, max_memory, "--max-memory"),
        options=TraceOptions(dtype=flags.parse_dtype(dtype)),
        answer=answer,
    )
    job = with_at(replace(job, stages=("cost",)), at)
    announce_own("counting", typed, job, answer)
    report = run_job(job)
    crash = report.trace.crash if report.trace else None
    outcome = report.outcome if report.outcome != "ok" else "crashed" if crash else "ok"
    again = replace(typed, verb="trace", rest=()).command()
    page = CostPage(
        target=target,
        built=report.target,
        outcome=outcome,
        cost=report.cost,
        notes=report.trace.notes if report.trace else (),
        message=f"{crash.file}:{crash.line}: {crash.error}: {crash.message}"
        if crash
        else report.message,
        next=f"{again} explains it" if crash else "",
    )
    return emit(page, json, 0 if outcome == "ok" else 1)

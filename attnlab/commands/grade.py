from __future__ import annotations

from typing import Annotated

import typer

from attnlab.commands.base import (
    PRACTISE,
    Json,
    Memory,
    Timeout,
    What,
    announce,
    choose,
    emit,
    inspect,
    limits,
    progress,
)

PLACE, PANEL = 40, PRACTISE
File = Annotated[str, typer.Argument(metavar="[FILE]", help="The file to grade instead.")]


def command(
    ctx: typer.Context,
    what: What,
    file: File = "",
    timeout: Timeout = "",
    memory: Memory = "",
    json: Json = False,
) -> int:
    """Grade your file: passed or failed, why, and what to do next."""
    from attnlab.render.grade import Graded
    from attnlab.target import challenge_job
    from attnlab.verdict import EXIT, judge

    chosen = choose(ctx, what, file)
    bounds = limits(timeout, memory)
    job = challenge_job(chosen.challenge, chosen.path, stages=("check",), limits=bounds)
    announce("grading", chosen)
    verdict = judge(chosen.challenge, chosen.shown, inspect(job))
    if chosen.yours:
        with progress() as kept:
            kept.graded(chosen.challenge.slug, verdict.outcome, verdict.score, chosen.shown)
    return emit(Graded(challenge=chosen.challenge, verdict=verdict), json, EXIT[verdict.outcome])

from __future__ import annotations

from typing import Annotated

import typer

from attnlab.commands.base import (
    Json,
    Memory,
    Timeout,
    What,
    announce,
    choose,
    emit,
    job_for,
    limits,
    progress,
    run_job,
)

PLACE = 40
SEEDS = 2**63 - 1  # the largest that torch takes
PATIENT = "60"  # seconds: torch.export alone takes some to load
All = Annotated[bool, typer.Option("--all", help="Go on after the first check that fails.")]
Full = Annotated[
    bool, typer.Option("--full", help="Also check what takes long, see docs/checks.md.")
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", min=0, max=SEEDS, help="Draw what was drawn with this seed before."
    ),
]
File = Annotated[str | None, typer.Argument(metavar="[FILE]", help="The file to grade instead.")]


def command(
    ctx: typer.Context,
    what: What,
    file: File = None,
    timeout: Timeout = "",
    memory: Memory = "",
    everything: All = False,
    full: Full = False,
    seed: Seed = None,
    json: Json = False,
) -> int:
    """Grade your file: passed or failed, and why.

    WHAT alone takes ./NAME.py when it is there, else the file as it was shipped. The first check
    that fails ends it, unless --all is given.
    """
    from dataclasses import replace

    from attnlab.render.grade import Graded
    from attnlab.verdict import EXIT, judge

    chosen = choose(ctx, what, file)
    whole = everything or chosen.challenge.bugs  # which bugs are gone takes all checks
    job = job_for(chosen, limits(timeout or (PATIENT if full else ""), memory), "check")
    job = replace(job, until="end" if whole else "reason", full=full, seed=seed)
    announce("grading", chosen)
    verdict = judge(chosen.challenge, chosen.file, run_job(job))
    if chosen.yours:
        with progress() as kept:
            kept.graded(chosen.challenge.slug, verdict.outcome, verdict.score, chosen.file)
    page = Graded(challenge=chosen.challenge, file=chosen.label, verdict=verdict)
    return emit(page, json, EXIT[verdict.outcome])

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from attnlab.commands.base import Json, What, emit, progress, select_file

PLACE = 60
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]


def command(ctx: typer.Context, what: What, yes: Yes = False, json: Json = False) -> int:
    """Show the solution; asks first unless you solved it."""
    from attnlab.render.challenge import SolutionPage

    challenge = select_file(ctx, what).challenge
    with progress() as kept:
        standing = kept.challenge_progress(challenge.slug)
        if not (yes or standing.status == "solved" or standing.solution_seen):
            _confirm(challenge.name)
        kept.mark_solution_seen(challenge.slug)
    texts = [Path(p).read_text("utf-8") for p in (challenge.file, challenge.solution)]
    notes = Path(challenge.notes).read_text("utf-8")
    page = SolutionPage(
        challenge=challenge,
        shipped=texts[0],
        solution=texts[1],
        notes=notes,
        solved=standing.status == "solved",
    )
    return emit(page, json)


def _confirm(name: str) -> None:
    """Raises unless a person at a terminal says yes."""
    from attnlab.errors import Refused

    hint = f"attnlab hint {name} gives another hint; --yes shows the solution anyway"
    if not sys.stdin.isatty():
        raise Refused(f"{name} is not solved yet, and there is no terminal to ask", hint)
    if not typer.confirm(f"{name} is not solved yet. Show the solution?", err=True):
        raise Refused("the solution was not shown", hint)

from __future__ import annotations

import typer

from attnlab.commands.base import Json, What, emit, select_file

PLACE = 80


def command(ctx: typer.Context, what: What, json: Json = False) -> int:
    """Put a challenge's file back; yours is kept beside it."""
    from attnlab.catalogue.starter import write_starter
    from attnlab.render.challenge import StartPage

    chosen = select_file(ctx, what)
    where = chosen.path if chosen.yours else None
    file, kept = write_starter(chosen.challenge, where, replace=True)
    return emit(StartPage(challenge=chosen.challenge, file=file, kept=kept), json)

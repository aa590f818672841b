from __future__ import annotations

import typer

from attnlab.commands.base import Json, catalogue, emit, progress, warn

PLACE = 10


def command(ctx: typer.Context, json: Json = False) -> int:
    """List the challenges, and how far you are."""
    from attnlab.records import Standing
    from attnlab.render.list import Listing

    found = catalogue(ctx)
    for error in found.broken:
        where = f"{error.where}: " if error.where else ""
        warn(f"left out: {where}{error.message}" + (f" ({error.hint})" if error.hint else ""))
    with progress() as kept:
        standings = kept.standings()
    rows = tuple((c, standings.get(c.slug, Standing())) for c in found.challenges)
    return emit(Listing(rows=rows), json)

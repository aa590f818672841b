from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from attnlab.commands.base import Json, catalogue, emit, progress, started_here, warn

if TYPE_CHECKING:
    from attnlab.render.list import ListPage

PLACE = 10


def command(ctx: typer.Context, json: Json = False) -> int:
    """List the challenges, and how far you are."""
    return emit(_listing(ctx), json)


def overview(ctx: typer.Context, json: bool) -> int:
    """What `attnlab` alone shows: how far the user is, and what is next."""
    from attnlab.render.list import OverviewPage

    return emit(OverviewPage(listing=_listing(ctx)), json)


def _listing(ctx: typer.Context) -> ListPage:
    from attnlab.records import ChallengeProgress
    from attnlab.render.list import ListPage

    found = catalogue(ctx)
    for error in found.broken:
        where = f"{error.where}: " if error.where else ""
        warn(f"left out: {where}{error.message}" + (f" ({error.hint})" if error.hint else ""))
    with progress() as kept:
        standings = kept.all_progress()
    rows = tuple((c, standings.get(c.slug, ChallengeProgress())) for c in found.challenges)
    return ListPage(rows=rows, here=started_here(found.challenges))

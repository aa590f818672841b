from __future__ import annotations

import typer

from attnlab.commands.base import Force, Json, Slug, catalogue, emit, progress

PLACE = 20


def command(ctx: typer.Context, slug: Slug, force: Force = False, json: Json = False) -> int:
    """Copy a challenge's file to this folder, for you to fix."""
    from attnlab.catalogue.starter import write_starter
    from attnlab.render.challenge import StartPage

    challenge = catalogue(ctx).find(slug)
    file, kept = write_starter(challenge, replace=force)
    with progress() as done:
        done.mark_started(challenge.slug)
    return emit(StartPage(challenge=challenge, file=file, kept=kept), json)

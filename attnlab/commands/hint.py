from __future__ import annotations

import typer

from attnlab.commands.base import Json, What, choose, emit, progress

PLACE = 50


def command(ctx: typer.Context, what: What, json: Json = False) -> int:
    """Show one hint more each time.

    The first is about the symptom, the second about the place, the third about the line.
    """
    from attnlab.render.hint import Hints

    challenge = choose(ctx, what).challenge
    with progress() as kept:
        taken = kept.standing(challenge.slug).hints
        if taken < len(challenge.hints):
            taken = kept.took_hint(challenge.slug)
    return emit(Hints(challenge=challenge, taken=min(taken, len(challenge.hints))), json)

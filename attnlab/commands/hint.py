from __future__ import annotations

import typer

from attnlab.commands.base import Json, What, emit, progress, select_file

PLACE = 50


def command(ctx: typer.Context, what: What, json: Json = False) -> int:
    """Show one more hint each time.

    The first is about the symptom, the second about the place, the third about the line.
    """
    from attnlab.render.challenge import HintPage

    challenge = select_file(ctx, what).challenge
    with progress() as kept:
        standing = kept.challenge_progress(challenge.slug)
        more = standing.hints < len(challenge.hints)
        taken = kept.add_hint(challenge.slug) if more else len(challenge.hints)
    solved = standing.status == "solved"
    return emit(HintPage(challenge=challenge, taken=taken, more=more, solved=solved), json)

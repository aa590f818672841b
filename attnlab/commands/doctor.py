from __future__ import annotations

import typer

from attnlab.commands.base import Json, emit, note

PLACE = 210


def command(ctx: typer.Context, json: Json = False) -> int:
    """Look at this installation.

    Versions, folders, and what holds graded code in.
    """
    from attnlab.doctor import vitals
    from attnlab.render.doctor import Health

    note("trying the worker, which loads torch")
    page = Health(vitals=tuple(vitals(ctx.obj)))
    return emit(page, json, 1 if page.outcome == "failed" else 0)

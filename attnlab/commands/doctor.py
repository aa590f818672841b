from __future__ import annotations

import typer

from attnlab.commands.base import Json, emit, note

PLACE = 210


def command(ctx: typer.Context, json: Json = False) -> int:
    """Check this installation.

    Versions, folders, and the layers that isolate graded code.
    """
    from attnlab.doctor import check_installation
    from attnlab.render.doctor import DoctorPage

    note("trying the worker, which loads torch")
    page = DoctorPage(vitals=tuple(check_installation(ctx.obj)))
    return emit(page, json, 1 if page.outcome == "failed" else 0)

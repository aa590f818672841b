from typing import Annotated

import typer

from attnlab.commands.base import Json, emit, note

PLACE = 210
Isolation = Annotated[
    bool, typer.Option("--isolation", help="Try every act that graded code must not do.")
]


def command(ctx: typer.Context, isolation: Isolation = False, json: Json = False) -> int:
    """Check this installation.

    Versions, folders, and the layers that isolate graded code.
    """
    from attnlab.doctor import check_installation, try_isolation
    from attnlab.render.doctor import DoctorPage, IsolationPage

    if isolation:
        note("trying each act in a process as graded code has it")
        tried = IsolationPage(attempts=tuple(try_isolation()))
        return emit(tried, json, 0 if tried.outcome == "passed" else 1)
    note("trying the worker, which loads torch")
    page = DoctorPage(vitals=tuple(check_installation(ctx.obj)))
    return emit(page, json, 1 if page.outcome == "failed" else 0)

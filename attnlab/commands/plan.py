from __future__ import annotations

from typing import Annotated

import typer

from attnlab.commands.base import Json, emit, whole_number

PLACE = 73
Days = Annotated[str, typer.Option("--days", metavar="N", help="Until the interview.")]
Hours = Annotated[str, typer.Option("--hours", metavar="N", help="To practise on each day.")]


def command(ctx: typer.Context, days: Days = "3", hours: Hours = "2", json: Json = False) -> int:
    """Plan the days until an interview, weak points first.

    It is made from your results: ask for it again tomorrow, with a day less.
    """
    from attnlab.commands.review import due_now, unsolved
    from attnlab.commands.stats import answers
    from attnlab.practice.answers import build_stats
    from attnlab.practice.plan import build_plan
    from attnlab.render.memory import PlanPage

    count = whole_number("--days", days, 1, 60, "as in 3")
    length = whole_number("--hours", hours, 1, 12, "as in 2")
    answered = answers(ctx)
    due = bool(due_now(answered))
    plan = build_plan(build_stats(answered), unsolved(ctx), count, length, due)
    return emit(PlanPage(days=tuple(plan), answers=len(answered)), json)

from __future__ import annotations

import time
from datetime import date
from typing import Annotated

import typer

from attnlab.commands.base import Json, emit, progress, whole_number

PLACE = 73
DAYS, HOURS = 3, 2
date_of = date.fromtimestamp
Days = Annotated[
    str, typer.Option("--days", metavar="N", help="Until the interview; 3, or those left.")
]
Hours = Annotated[str, typer.Option("--hours", metavar="N", help="To practise on each day; 2.")]


def command(ctx: typer.Context, days: Days = "", hours: Hours = "", json: Json = False) -> int:
    """Plan the days until an interview, weak points first.

    It is made from your results, and remembers its days: ask for it again tomorrow.
    """
    from attnlab.commands.review import due_now, unsolved
    from attnlab.commands.stats import answers
    from attnlab.practice.answers import ROUND, build_stats
    from attnlab.practice.interviews import all_interviews
    from attnlab.practice.plan import MINUTES, Today, build_plan, worked_minutes
    from attnlab.records.practice import Event
    from attnlab.render.memory import PlanPage

    count, length = _kept()
    count = whole_number("--days", days, 1, 60, "as in 3") if days else count
    length = whole_number("--hours", hours, 1, 12, "as in 2") if hours else length
    if days or hours:
        with progress() as store:
            store.add_event(Event(kind="plan", base="", text=f"[{count}, {length}]"))
    answered, now = answers(ctx), date_of(time.time())
    today = [answer for answer in answered if date_of(answer.at) == now]
    due = bool(due_now(answered))
    with progress() as store:
        spans = [(i.started, i.started + i.elapsed(time.time())) for i in all_interviews(store)]
        events = [event.at for event in store.events() if date_of(event.at) == now]
    spans = [span for span in spans if date_of(span[0]) == now]
    timed = [answer.at - answer.seconds for answer in today if answer.seconds]
    begin = min((*events, *timed, *(first for first, _ in spans)), default=0.0)
    for answer in today:
        unknown = 60 * MINUTES.get(answer.kind, MINUTES[""]) * (answer.kind != ROUND)
        spans.append((answer.at - (answer.seconds or unknown), answer.at))
    done = worked_minutes((max(first, begin), last) for first, last in spans)
    with progress() as store:
        standings = store.all_progress()
    begun = {slug for slug, standing in standings.items() if standing.status != "new"}
    shown = {slug for slug, standing in standings.items() if standing.solution_seen}
    left = [challenge for challenge in unsolved(ctx) if challenge.slug not in shown]
    seen = Today(today, done, begun)
    plan = build_plan(build_stats(answered), left, count, length, due, seen)
    page = PlanPage(days=tuple(plan), answers=len(answered), today=len(today), done=done)
    return emit(page, json)


def _kept() -> tuple[int, int]:
    """Days and hours as they were asked for last, less the days that passed."""
    days, hours, passed = _asked() or (DAYS, HOURS, 0)
    return days - passed if passed < days else DAYS, hours


def _asked() -> tuple[int, int, int] | None:
    """Days, hours and the days that passed since then of the plan that was asked for last."""
    from json import loads

    with progress() as store:
        asked = next((e for e in reversed(store.events()) if e.kind == "plan"), None)
    if asked is None:
        return None
    days, hours = loads(asked.text)
    return days, hours, (date_of(time.time()) - date_of(asked.at)).days


def open_plan() -> str:
    """`day 1 of 2` of a plan that was asked for and is not over; "" where there is none."""
    days, _, passed = _asked() or (0, 0, 0)
    return f"day {passed + 1} of {days}" if passed < days else ""

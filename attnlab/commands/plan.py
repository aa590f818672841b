from __future__ import annotations

import time
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, emit, progress, started_here, whole_number
from attnlab.records.practice import ROUND, Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnlab.records.practice import Answer, Interview, PlanStep
    from attnlab.render.memory import PlanPage

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
    from dataclasses import replace

    from attnlab.commands.next import find_following

    count, length = _kept()
    count = whole_number("--days", days, 1, 60, "as in 3") if days else count
    length = whole_number("--hours", hours, 1, 12, "as in 2") if hours else length
    if days or hours or not open_plan():
        with progress() as store:
            store.add_event(Event(kind="plan", base="", text=f"[{count}, {length}]"))
    page = plan_page(ctx, count, length)
    return emit(replace(page, next=find_following(ctx, plan=page).command), json)


def plan_page(ctx: typer.Context, count: int, hours: int) -> PlanPage:
    """The plan of so many days from today on, as the results have it now."""
    from attnlab.commands.review import due_now, split_due, unsolved
    from attnlab.commands.stats import answers
    from attnlab.practice.answers import build_stats
    from attnlab.practice.interviews import all_interviews, current
    from attnlab.practice.plan import REVIEW, Today, build_plan, without_reviews
    from attnlab.records.practice import QUESTION
    from attnlab.render.memory import PlanPage

    answered, clock = answers(ctx), time.time()
    now = date_of(clock)
    today = [answer for answer in answered if date_of(answer.at) == now]
    morning = datetime.combine(now, datetime.min.time()).timestamp()
    known = due_now([answer for answer in answered if answer.at < morning], morning)
    known = [card for card in known if card.noun == QUESTION]
    due, _, _ = split_due(ctx, answered, REVIEW)
    due = [card for card in due if card.noun == QUESTION]
    with progress() as store:
        interviews, running = all_interviews(store), current(store)
        standings, events = store.all_progress(), store.events()
    shown = {slug for slug, standing in standings.items() if standing.solution_seen}
    left = [challenge for challenge in unsolved(ctx) if challenge.slug not in shown]
    done = _minutes_of_today(today, events, interviews)
    seen = Today(
        answers=without_reviews(today, known),
        minutes=done,
        begun=started_here(left),
        due=sum(card.count for card in due),
        due_minutes=sum(card.minutes for card in due),
        reviewed=bool(known),
        going_on=max(running.left(clock), 0) / 60 if running else None,
    )
    plan = build_plan(build_stats(answered), left, count, hours, seen)
    return PlanPage(days=tuple(plan), answers=len(answered), today=len(today), done=done)


def _minutes_of_today(
    today: Sequence[Answer], events: Sequence[Event], interviews: Sequence[Interview]
) -> float:
    """Of practice, as far as answers and interviews tell how long they took."""
    from attnlab.practice.plan import MINUTES, worked_minutes

    now, clock = date_of(time.time()), time.time()
    spans = [(i.started, i.started + i.elapsed(clock)) for i in interviews]
    spans = [span for span in spans if date_of(span[0]) == now]
    known = [event.at for event in events if date_of(event.at) == now]
    timed = [answer.at - answer.seconds for answer in today if answer.seconds]
    begin = min((*known, *timed, *(first for first, _ in spans)), default=0.0)
    for answer in today:
        unknown = 60 * MINUTES.get(answer.kind, MINUTES[""]) * (answer.kind != ROUND)
        spans.append((answer.at - (answer.seconds or unknown), answer.at))
    return worked_minutes((max(first, begin), last) for first, last in spans)


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


def step_of_today(ctx: typer.Context) -> PlanStep | None:
    """The first step that is left of today, if a plan is open."""
    if not open_plan():
        return None
    days = plan_page(ctx, *_kept()).days
    return next(iter(days[0].steps), None)

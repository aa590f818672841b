"""Past interviews."""

from __future__ import annotations

import time

import typer

from attnlab.commands.base import Json, emit, progress
from attnlab.commands.interview.shared import past_scorecards


def history(ctx: typer.Context, json: Json = False) -> int:
    """List past interviews, and which kinds of bugs are missed."""
    from attnlab.practice.interviews import all_interviews
    from attnlab.practice.trend import build_trend
    from attnlab.render.interview import HistoryPage

    with progress() as store:
        interviews = all_interviews(store)
    cards = past_scorecards(ctx, interviews)
    page = HistoryPage(
        interviews=tuple(interviews),
        cards=tuple(cards),
        trend=build_trend(cards),
        now=time.time(),
    )
    return emit(page, json)

"""Past interviews."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from attnlab.commands.base import Json, progress
from attnlab.commands.output import Html, emit_also
from attnlab.commands.rounds import past_scorecards

Number = Annotated[
    str, typer.Argument(metavar="[NUMBER]", help="Of one interview: its scorecard again.")
]


def history(ctx: typer.Context, number: Number = "", html: Html = "", json: Json = False) -> int:
    """List past interviews, and which kinds of bugs are missed; or show one again."""
    from attnlab.errors import Refused
    from attnlab.practice.interviews import all_interviews
    from attnlab.practice.trend import build_trend
    from attnlab.render.interview import HistoryPage, ScorecardPage

    with progress() as store:
        interviews = all_interviews(store)
    cards = past_scorecards(ctx, interviews)
    if number:
        at = next((at for at, card in enumerate(cards) if str(card.number) == number), None)
        if at is None:
            hint = "attnlab interview history lists all; those that ended have one"
            raise Refused(f"there is no scorecard of interview {number}", hint, number)
        card = ScorecardPage(card=cards[at], trend=build_trend(cards[: at + 1]))
        return emit_also(card, json, 0, html)
    page = HistoryPage(
        interviews=tuple(interviews),
        cards=tuple(cards),
        trend=build_trend(cards),
        now=time.time(),
    )
    return emit_also(page, json, 0, html)

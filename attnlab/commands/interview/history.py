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
    """List past interviews and what was missed, or show one."""
    from attnlab.commands.stats import all_stats
    from attnlab.errors import Refused
    from attnlab.practice.formats import past_formats
    from attnlab.practice.interviews import all_interviews
    from attnlab.practice.trend import build_trend
    from attnlab.records.scorecard import FormatCard, RoundCard
    from attnlab.render.format_round import FormatCardPage
    from attnlab.render.scorecard import HistoryPage, ScorecardPage

    with progress() as store:
        interviews = all_interviews(store)
    cards, formats = past_scorecards(ctx, interviews), past_formats(interviews)
    both: list[RoundCard] = sorted([*cards, *formats], key=lambda one: one.number)
    if number:
        card = next((card for card in both if str(card.number) == number), None)
        if card is None:
            hint = "attnlab interview history lists all; those that ended have one"
            raise Refused(f"there is no scorecard of interview {number}", hint, number)
        trend = build_trend([one for one in both if one.number <= card.number], all_stats(ctx))
        if isinstance(card, FormatCard):
            return emit_also(FormatCardPage(card=card, trend=trend), json, 0, html)
        return emit_also(ScorecardPage(card=card, trend=trend), json, 0, html)
    page = HistoryPage(
        interviews=tuple(interviews),
        cards=tuple(cards),
        formats=tuple(formats),
        trend=build_trend(both, all_stats(ctx)),
        now=time.time(),
    )
    return emit_also(page, json, 0, html)

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, emit, progress, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnlab.records import Challenge
    from attnlab.records.practice import Answer, DueCard

PLACE = 71
Minutes = Annotated[str, typer.Option("--minutes", metavar="N", help="How long; 10.")]


def command(ctx: typer.Context, minutes: Minutes = "10", json: Json = False) -> int:
    """Practise again what you are about to forget, for ten minutes.

    A kind of question about a kind of bug comes back when it is due, in another variant each time.
    """
    from dataclasses import replace

    from attnlab.commands.next import find_following
    from attnlab.commands.stats import answers
    from attnlab.render.memory import ReviewPage

    limit = whole_number("--minutes", minutes, 1, 600, "as in 10")
    answered = answers(ctx)
    now, later, more = split_due(ctx, answered, limit)
    page = ReviewPage(now=tuple(now), later=tuple(later), more=more, limit=limit)
    following = "" if page.due else find_following(ctx).command
    page = replace(page, answers=len(answered), clock=time.time(), next=following)
    return emit(page, json)


def split_due(
    ctx: typer.Context, answered: Sequence[Answer], limit: float
) -> tuple[list[DueCard], list[DueCard], int]:
    """What is due and fits into so many minutes, what takes longer, with the commands that ask it,
    and how many questions more are due."""
    from attnlab.practice.memory import ask_together, fill_minutes

    now, later, more = fill_minutes(due_now(answered), limit)
    return _ready(ctx, ask_together(now)), _ready(ctx, ask_together(later)), more


def _ready(ctx: typer.Context, cards: Sequence[DueCard]) -> list[DueCard]:
    from dataclasses import replace

    return [replace(card, command=_command(ctx, card)) for card in cards]


def due_now(answered: Sequence[Answer], at: float | None = None) -> list[DueCard]:
    """The cards that are due now, or were at another time; all bugs of rounds are one."""
    from attnlab.practice.memory import due_cards, join_rounds
    from attnlab.practice.plan import MINUTES

    return join_rounds(due_cards(answered, MINUTES, time.time() if at is None else at))


def unsolved(ctx: typer.Context, kind: str = "debug") -> list[Challenge]:
    """The challenges of a kind that are not solved, easier ones first."""
    with progress() as store:
        standings = store.all_progress()
    solved = {slug for slug, standing in standings.items() if standing.status == "solved"}
    found = [c for c in catalogue(ctx).challenges if c.slug not in solved and c.kind == kind]
    return sorted(found, key=lambda challenge: (challenge.level, challenge.slug))


def _command(ctx: typer.Context, card: DueCard) -> str:
    """The command that asks another question of the card."""
    from attnlab.commands.stats import all_stats
    from attnlab.records.practice import FIX, ROUND, WRITTEN

    if card.kind == ROUND:
        about = card.category.split(", ")
        weak = [row.name for row in all_stats(ctx).weak if row.name in about]
        return f"attnlab interview start --about {(weak or about)[0]}"
    if card.kind not in WRITTEN:
        return f"attnlab quiz {card.kind} --about due --count {card.count}"
    left = unsolved(ctx, "debug" if card.kind == FIX else card.kind)
    # The answer counts for this kind of bug alone: of another one, the card would stay due.
    fits = next((c for c in left if card.category == (c.category or c.topic)), None)
    other = "attnlab new" if card.kind == FIX else f"attnlab interview start {card.kind}"
    return f"attnlab start {fits.name}" if fits else other

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

    from attnlab.commands.stats import answers
    from attnlab.practice.memory import ask_together, fill_minutes
    from attnlab.render.memory import ReviewPage

    limit = whole_number("--minutes", minutes, 1, 600, "as in 10")
    answered = answers(ctx)
    due = due_now(answered)
    now = [replace(c, command=_command(ctx, c)) for c in ask_together(fill_minutes(due, limit))]
    page = ReviewPage(
        now=tuple(now), due=len(due), answers=len(answered), clock=time.time(), limit=limit
    )
    return emit(page, json)


def due_now(answered: Sequence[Answer]) -> list[DueCard]:
    from attnlab.practice.memory import due_cards
    from attnlab.practice.plan import MINUTES

    return due_cards(answered, MINUTES, time.time())


def unsolved(ctx: typer.Context, kind: str = "debug") -> list[Challenge]:
    """The challenges of a kind that are not solved, easier ones first."""
    with progress() as store:
        standings = store.all_progress()
    solved = {slug for slug, standing in standings.items() if standing.status == "solved"}
    found = [c for c in catalogue(ctx).challenges if c.slug not in solved and c.kind == kind]
    return sorted(found, key=lambda challenge: (challenge.level, challenge.slug))


def _command(ctx: typer.Context, card: DueCard) -> str:
    """The command that asks another question of the card."""
    from attnlab.practice.answers import FIX, ROUND
    from attnlab.records.practice import WRITTEN

    if card.kind == ROUND:
        return f"attnlab interview start --about {card.category}"
    if card.kind not in WRITTEN:
        return f"attnlab quiz {card.kind} --about due --count {card.count}"
    left = unsolved(ctx, "debug" if card.kind == FIX else card.kind)
    # The answer counts for this kind of bug alone: of another one, the card would stay due.
    fits = next((c for c in left if card.category == (c.category or c.topic)), None)
    other = "attnlab new" if card.kind == FIX else f"attnlab interview start {card.kind}"
    return f"attnlab start {fits.name}" if fits else other

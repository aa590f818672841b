"""When what was answered is to be asked again: cards of FSRS, made anew from all answers.

A card is a kind of question about a kind of bug, never one question: each review asks another
variant. Nothing is kept but the answers, so other settings or a later FSRS need no conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from fsrs import Card, Rating, Scheduler

from attnlab.records.practice import QUESTION, ROUND, Answer, DueCard, Mark

TELLING = ("spot", "incident", "effect")  # kinds to whose questions the kind of bug is an answer
RATINGS: dict[Mark, Rating] = {"right": Rating.Good, "partly": Rating.Hard, "wrong": Rating.Again}


def due_cards(answers: Sequence[Answer], minutes: dict[str, float], now: float) -> list[DueCard]:
    """The cards that are due: what was not right at last, then what is most likely forgotten.
    `minutes` are those that a question of each kind takes."""
    # The same answers give the same dates; a right answer is not asked again on its day.
    steps = (timedelta(minutes=1),)
    scheduler = Scheduler(enable_fuzzing=False, learning_steps=steps, relearning_steps=steps)
    cards: dict[tuple[str, str], Card] = {}
    marks: dict[tuple[str, str], Mark] = {}
    for answer in answers:
        key = answer.category, answer.kind
        card = cards.get(key) or Card(card_id=len(cards) + 1)
        marks[key] = answer.mark
        at = datetime.fromtimestamp(answer.at, UTC)
        cards[key], _ = scheduler.review_card(card, RATINGS[answer.mark], at)
    when = datetime.fromtimestamp(now, UTC)
    due = [
        DueCard(
            category=category,
            kind=kind,
            last=marks[category, kind],
            due=card.due.timestamp(),
            recall=scheduler.get_card_retrievability(card, when),
            minutes=minutes.get(kind, minutes[""]),
        )
        for (category, kind), card in cards.items()
        if card.due <= when
    ]
    return sorted(due, key=lambda card: (card.last == "right", card.recall, card.due))


def fill_minutes(
    cards: Sequence[DueCard], minutes: float
) -> tuple[list[DueCard], list[DueCard], int]:
    """The first cards that fit into so many minutes, what needs more time, and how many questions
    more are due. Where nothing fits, the shortest needs more time."""
    now: list[DueCard] = []
    left: list[DueCard] = []
    for card in cards:
        fits = sum(each.minutes for each in now) + card.minutes <= minutes
        (now if fits else left).append(card)
    long = [card for card in left if card.noun != QUESTION]
    if not (now or long):
        long = sorted(left, key=lambda card: card.minutes)[:1]
    return now, long, len(left) - len(long)


def join_rounds(cards: Sequence[DueCard]) -> list[DueCard]:
    """The cards with one for all bugs of rounds: whoever takes one meets several."""
    rounds = [card for card in cards if card.kind == ROUND]
    names = ", ".join(card.category for card in rounds)
    others = [card for card in cards if card.kind != ROUND]
    return [*others, *(replace(card, category=names) for card in rounds[:1])]


def ask_together(cards: Sequence[DueCard]) -> list[DueCard]:
    """One of all that a quiz of one kind asks. It names no kind of bug that would be an answer."""
    groups: dict[tuple[str, str], list[DueCard]] = {}
    for card in cards:
        alone = card.noun != QUESTION
        groups.setdefault((card.kind, card.category if alone else ""), []).append(card)
    return [
        replace(
            group[0],
            category="" if kind in TELLING else ", ".join(card.category for card in group),
            due=min(card.due for card in group),
            recall=min(card.recall for card in group),
            minutes=sum(card.minutes for card in group),
            count=len(group),
        )
        for (kind, _), group in groups.items()
    ]

"""When what was answered is to be asked again: cards of FSRS, made anew from all answers.

A card is a kind of question about a kind of bug, never one question: each review asks another
variant. Nothing is kept but the answers, so other settings or a later FSRS need no conversion.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from fsrs import Card, Rating, Scheduler

from attnlab.records.practice import Answer, DueCard
from attnlab.records.quiz import Mark

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


def fill_minutes(cards: Sequence[DueCard], minutes: float) -> list[DueCard]:
    """The first cards that fit into so many minutes; always one."""
    found: list[DueCard] = []
    for card in cards:
        if found and sum(each.minutes for each in found) + card.minutes > minutes:
            break
        found.append(card)
    return found

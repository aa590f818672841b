"""A plan of some days: what is weak or was never asked comes first, and a round ends each day.

It is made anew from the answers each time, so it adapts to them: what is solved is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from attnlab.practice.answers import GOOD
from attnlab.records import Challenge
from attnlab.records.practice import FIX, Answer, CategoryStats, DueCard, PlanDay, PlanStep, Stats
from attnlab.records.practice import ROUND as PROGRAM

MINUTES = {
    "": 2.0,
    FIX: 15.0,
    "implement": 15.0,
    "round": 60.0,
    "spot": 3.0,
    "incident": 4.0,
    "tests": 10.0,
}
REVIEW, ROUND = 10.0, MINUTES["round"]  # minutes of a step
QUIZZES = ("shapes", "spot", "effect", "why", "numbers", "incident")
COUNT = 5  # questions of a step


class Today(NamedTuple):
    """What was done on a day, and what there is to go on with."""

    answers: Sequence[Answer] = ()  # but for those that were due
    minutes: float = 0.0  # of practice
    begun: Collection[str] = ()  # slugs of challenges whose file is there
    due: int = 0  # questions that are due and fit into a review
    due_minutes: float = 0.0
    reviewed: bool = False  # something was due when the day began
    going_on: float | None = None  # minutes left of the round that was begun; 0 without a limit


NOTHING = Today()


def build_plan(
    stats: Stats, unsolved: Sequence[Challenge], days: int, hours: float, today: Today = NOTHING
) -> list[PlanDay]:
    """The steps of each day. How much the first one holds is the same from its morning on, so that
    whatever is done leaves less; what it holds follows the answers."""
    left = _by_weakness(stats, unsolved, today.begun)
    found = []
    for day in range(days):
        last = day == days - 1  # its round is drawn as in the interview
        about = stats.weak[day].name if day < len(stats.weak) and not last else ""
        steps = _day_steps(stats, day, about, 60.0 * hours, left, today)
        found.append(PlanDay(number=day + 1, steps=tuple(steps)))
    return found


def without_reviews(answers: Iterable[Answer], due: Iterable[DueCard]) -> list[Answer]:
    """The answers but for the first to each card that was due."""
    waiting = {(card.category, card.kind) for card in due}
    found = []
    for answer in answers:
        if (card := (answer.category, answer.kind)) in waiting:
            waiting.remove(card)
        else:
            found.append(answer)
    return found


def worked_minutes(spans: Iterable[tuple[float, float]]) -> float:
    """The minutes of spans from second to second, what lies in several of them once."""
    total = end = 0.0
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total / 60


def _day_steps(
    stats: Stats,
    day: int,
    about: str,
    whole: float,
    left: list[tuple[Challenge, str]],
    today: Today,
) -> list[PlanStep]:
    """A review, questions, challenges and a round, as far as they fit into what is left of the day:
    short things first, the round at the end."""
    done = Counter(a.kind for a in today.answers if not day and not a.follows)
    budget = whole - today.minutes * (not day)
    kinds = _weak_first(stats.kinds, QUIZZES)
    kind = (
        max(kinds, key=done.__getitem__) if any(map(done.get, kinds)) else kinds[day % len(kinds)]
    )
    quiz = COUNT * MINUTES.get(kind, MINUTES[""])
    review = REVIEW * (day > 0 or today.reviewed)
    has_round = whole >= ROUND + review + quiz
    challenges = int((whole - review - quiz - ROUND * has_round) // MINUTES[FIX]) - done[FIX]

    going_on = not day and today.going_on is not None
    rounds = _round(about, budget, today if not day else NOTHING)
    rounds = rounds if going_on or (has_round and not done[PROGRAM]) else []
    budget -= sum(step.minutes for step in rounds)
    short = []
    minutes = today.due_minutes if not day else REVIEW
    if 0 < minutes <= budget:
        why = f"{today.due} question{'s' * (today.due > 1)} due" if not day else "what is due"
        short.append(PlanStep(minutes=minutes, command="attnlab review", why=why))
        budget -= minutes
    count = COUNT - done[kind]
    minutes = quiz / COUNT * count
    if count > 0 and minutes <= budget:
        why = f"{count} question{'s' * (count > 1)}" + " more" * (count < COUNT)
        command = f"attnlab quiz {kind} --count {count}"
        short.append(PlanStep(minutes=minutes, command=command, why=why))
        budget -= minutes
    fixes = list(_fixes(left, min(challenges, int(budget // MINUTES[FIX])), today.begun))
    return [*rounds, *short, *fixes] if going_on else [*short, *fixes, *rounds]


def _round(about: str, budget: float, today: Today) -> list[PlanStep]:
    """That of a day, or what is left of the one that is going on."""
    if today.going_on is not None:
        command = "attnlab interview status"
        return [PlanStep(minutes=today.going_on, command=command, why="it is going on")]
    flag = f" --about {about}" if about else ""
    why = "a program against the clock" + (f", with bugs about {about}" if about else "")
    step = PlanStep(minutes=ROUND, command=f"attnlab interview start{flag}", why=why)
    return [step] * (budget >= ROUND)


def _fixes(
    left: list[tuple[Challenge, str]], count: int, begun: Collection[str]
) -> Iterator[PlanStep]:
    """So many challenges, each taken off the list; a drawn one where none is left."""
    for _ in range(count):
        if left:
            challenge, why = left.pop(0)
            yield _fix(challenge, why, begun)
        else:
            why = "every challenge is solved: a fresh one"
            yield PlanStep(minutes=MINUTES[FIX], command="attnlab new", why=why)


def _fix(challenge: Challenge, why: str, begun: Collection[str]) -> PlanStep:
    minutes, name = MINUTES[FIX], challenge.name
    if challenge.slug in begun:
        return PlanStep(minutes=minutes, command=f"attnlab watch {name}", why=f"{why}, and begun")
    return PlanStep(minutes=minutes, command=f"attnlab start {name}", why=why, slug=challenge.slug)


def _by_weakness(
    stats: Stats, unsolved: Sequence[Challenge], begun: Collection[str]
) -> list[tuple[Challenge, str]]:
    """Unsolved challenges: those that are begun, then one of each category in turn, the weakest
    first, then what was never asked; easier ones first."""
    known = {row.name: row for row in stats.categories}
    order = list(known)
    groups: dict[str, list[Challenge]] = {}
    for challenge in sorted(unsolved, key=lambda c: (c.level, c.slug)):
        groups.setdefault(challenge.category or challenge.topic, []).append(challenge)

    def place(name: str) -> tuple[int, int, str]:
        if name not in known:
            return 1, -len(groups[name]), name
        return (0 if known[name] in stats.weak else 2), order.index(name), name

    found: list[tuple[Challenge, str]] = []
    names = sorted(groups, key=place)
    while any(groups.values()):
        asked = [name for name in names if groups[name]]
        found += [(groups[name].pop(0), _reason(name, known.get(name))) for name in asked]
    return sorted(found, key=lambda one: one[0].slug not in begun)


def _reason(name: str, row: CategoryStats | None) -> str:
    if row is None:
        return f"{name}: not tried yet"
    return f"{name}: {sum(row.lately)} of {len(row.lately)} right lately"


def _weak_first(rows: Sequence[CategoryStats], kinds: Sequence[str]) -> list[str]:
    """What is weak comes before what was never asked, that before what is good."""
    known = {row.name: row.lately_share + (row.lately_share >= GOOD) for row in rows}
    return sorted(kinds, key=lambda kind: (known.get(kind, 1.0), kinds.index(kind)))

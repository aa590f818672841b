"""A plan of some days: what is weak or was never asked comes first, and a round ends each day.

It is made anew from the answers each time, so it adapts to them: what is solved is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from attnlab.catalogue.categories import CATEGORIES
from attnlab.practice.answers import FIX
from attnlab.practice.answers import ROUND as PROGRAM
from attnlab.records import Challenge
from attnlab.records.practice import Answer, CategoryStats, PlanDay, PlanStep, Stats

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
GOOD = 0.75  # of the last answers right: such a category can wait


class Today(NamedTuple):
    """What was answered on a day, how many minutes of practice it saw, and the slugs of challenges
    whose file is there."""

    answers: Sequence[Answer] = ()
    minutes: float = 0.0
    begun: Collection[str] = ()


NOTHING = Today()


def build_plan(
    stats: Stats,
    unsolved: Sequence[Challenge],
    days: int,
    hours: float,
    reviewed: bool,
    today: Today = NOTHING,
) -> list[PlanDay]:
    """The steps of each day. `reviewed`: there is something to review from the first day on;
    `today`: what was done on it, which is left out of its steps."""
    left = _by_weakness(stats, unsolved)
    kinds = _weak_first(stats.kinds, QUIZZES)
    weak = [row.name for row in stats.categories if _rank(row) < 1 and row.name in CATEGORIES]
    found = []
    for day in range(days):
        last = day == days - 1  # its round is drawn as in the interview
        done = Counter(a.kind for a in today.answers if not day and not a.follows)
        whole = hours * 60.0
        budget = whole - today.minutes * (not day)
        about = weak[day] if day < len(weak) and not last else ""
        kind, review = kinds[day % len(kinds)], reviewed or day > 0
        steps = list(_frame(kind, about, whole, budget, review, done))
        budget -= sum(step.minutes for step in steps)
        fixes = list(_fixes(left, budget, today.begun))
        found.append(PlanDay(number=day + 1, steps=tuple(_order(steps, fixes))))
    return found


def worked_minutes(spans: Iterable[tuple[float, float]]) -> float:
    """The minutes of spans from second to second, what lies in several of them once."""
    total = end = 0.0
    for first, last in sorted(spans):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total / 60


def _frame(
    kind: str, about: str, whole: float, budget: float, review: bool, done: Counter[str]
) -> Iterator[PlanStep]:
    """What every day has, as far as it fits into what is left of it and is not done. Where a whole
    day has room for a round, it is kept free for that."""
    left = COUNT - done[kind]
    minutes = left * MINUTES.get(kind, MINUTES[""])
    rounds = whole >= ROUND + REVIEW * review + minutes and not done[PROGRAM]
    if rounds := rounds and budget >= ROUND:
        budget -= ROUND
    if review and budget >= REVIEW:
        budget -= REVIEW
        yield PlanStep(minutes=REVIEW, command="attnlab review", why="what is due")
    if budget >= minutes and all(done[kind] < COUNT for kind in QUIZZES):
        command = f"attnlab quiz {kind} --count {left}"
        why = f"{left} question{'s' * (left > 1)}" + " more" * (left < COUNT)
        yield PlanStep(minutes=minutes, command=command, why=why)
    if rounds:
        flag = f" --about {about}" if about else ""
        why = "a program against the clock" + (f", half of its bugs about {about}" if about else "")
        yield PlanStep(minutes=ROUND, command=f"attnlab interview start{flag}", why=why)


def _order(frame: Sequence[PlanStep], fixes: Sequence[PlanStep]) -> list[PlanStep]:
    """Short things first, the round at the end."""
    rounds = [step for step in frame if step.minutes == ROUND]
    return [*(s for s in frame if s not in rounds), *fixes, *rounds]


def _fixes(
    left: list[tuple[Challenge, str]], budget: float, begun: Collection[str]
) -> Iterator[PlanStep]:
    """Challenges for so many minutes, each taken off the list; a drawn one where none is left."""
    while budget >= MINUTES[FIX]:
        budget -= MINUTES[FIX]
        if left:
            challenge, why = left.pop(0)
            goes_on = challenge.slug in begun
            command = f"attnlab {'watch' if goes_on else 'start'} {challenge.name}"
            why = f"{why}, and begun" if goes_on else why
        else:
            command, why = "attnlab new", "every challenge is solved: a fresh one"
        yield PlanStep(minutes=MINUTES[FIX], command=command, why=why)


def _by_weakness(stats: Stats, unsolved: Sequence[Challenge]) -> list[tuple[Challenge, str]]:
    """Unsolved challenges: one of each category in turn, the weakest first, then what was never
    asked; easier ones first."""
    known = {row.name: row for row in stats.categories}
    groups: dict[str, list[Challenge]] = {}
    for challenge in sorted(unsolved, key=lambda c: (c.level, c.slug)):
        groups.setdefault(challenge.category or challenge.topic, []).append(challenge)
    order = sorted(groups, key=lambda name: (_rank(known.get(name)), -len(groups[name]), name))
    found: list[tuple[Challenge, str]] = []
    while any(groups.values()):
        asked = [name for name in order if groups[name]]
        found += [(groups[name].pop(0), _reason(name, known.get(name))) for name in asked]
    return found


def _rank(row: CategoryStats | None) -> float:
    """What is weak comes before what was never asked, that before what is good."""
    if row is None:
        return 1.0
    return row.lately_share if row.lately_share < GOOD else 1.0 + row.lately_share


def _reason(name: str, row: CategoryStats | None) -> str:
    if row is None:
        return f"{name}: not tried yet"
    return f"{name}: {sum(row.lately)} of {len(row.lately)} right lately"


def _weak_first(rows: Sequence[CategoryStats], kinds: Sequence[str]) -> list[str]:
    known = {row.name: row for row in rows}
    return sorted(kinds, key=lambda kind: (_rank(known.get(kind)), kinds.index(kind)))

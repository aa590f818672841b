"""What a person answered, whatever was asked: challenges fixed, quizzes, bugs of interviews.

It is read off the events, so nothing is kept besides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from attnlab.catalogue.categories import CATEGORIES
from attnlab.practice.interviews import read_details
from attnlab.records.practice import (
    FIX,
    ROUND,
    WRITTEN,
    Answer,
    CategoryStats,
    Event,
    Mark,
    Stats,
)

if TYPE_CHECKING:
    from attnlab.records.scorecard import Scorecard

UNTOUCHED = "untouched"  # of a grade of a file as it was given, which is no try
OTHER = "other"  # of a quiz that is about no kind of bug
AWAY = 3600.0  # seconds between two events after which nobody was at work
LATELY = 4  # answers of a category by which its trend is told
GOOD = 0.75  # of them right: such a category can wait


def all_answers(
    events: Sequence[Event], categories: Mapping[str, str], cards: Iterable[Scorecard]
) -> list[Answer]:
    """Every answer, the first one first. `categories` are those of challenges, by slug."""
    found = [*_fixes(events, categories), *_quizzes(events), *_rounds(cards)]
    return sorted(found, key=lambda answer: answer.at)


def _quizzes(events: Iterable[Event]) -> Iterator[Answer]:
    """The first answer to each question: once it was judged, its answer is known. Of a file that a
    round asks for, the last hand-in is told; it is partly right where it is not the first."""
    seen, written = set[str](), dict[tuple[int, str], list[Event]]()
    for event in events:
        if event.kind == "task" and event.question in WRITTEN:
            written.setdefault((event.interview, event.base), []).append(event)
        elif event.kind in ("quiz", "task"):
            name = event.text if event.kind == "quiz" else str(read_details(event).get("id"))
            if not name or name not in seen:
                seen.add(name)
                yield _answer(event, event.outcome, event.seconds)
    for tries in written.values():
        mark = "partly" if tries[-1].outcome == "right" and len(tries) > 1 else tries[-1].outcome
        yield _answer(tries[-1], mark, sum(event.seconds for event in tries))


def _answer(event: Event, outcome: str, seconds: float) -> Answer:
    mark: Mark = outcome if outcome in ("right", "partly") else "wrong"  # type: ignore[assignment]
    return Answer(
        category=event.category or OTHER,
        kind=event.question,
        mark=mark,
        seconds=seconds,
        at=event.at,
        follows=event.kind == "quiz" and event.text.count(".") > 1,  # shapes.17.2
    )


def _fixes(events: Iterable[Event], categories: Mapping[str, str]) -> Iterator[Answer]:
    """One where a challenge was passed, or its solution looked up before; another of it only once
    it was started afresh."""
    under_way, passed_once = dict[str, list[Event]](), set[str]()
    for event in events:
        if event.interview or event.base not in categories:
            continue
        if event.kind == "start" or event.question == UNTOUCHED:
            passed_once.discard(event.base)
        if event.question == UNTOUCHED or event.base in passed_once:
            continue
        mine = under_way.setdefault(event.base, [])
        mine.append(event)
        passed = event.kind == "grade" and event.outcome == "passed"
        if passed or event.kind == "solution":
            if passed or any(e.kind != "solution" for e in mine):
                yield _fix(mine, categories[event.base], passed)
            passed_once.add(event.base)  # who types in what was shown has solved nothing
            del under_way[event.base]


def _fix(events: Sequence[Event], category: str, passed: bool) -> Answer:
    helped = sum(e.kind in ("hint", "grade") for e in events) - passed
    mark: Mark = "wrong" if not passed else "partly" if helped else "right"
    worked = sum(min(b.at - a.at, AWAY) for a, b in pairwise(events))
    return Answer(category=category, kind=FIX, mark=mark, seconds=worked, at=events[-1].at)


def _rounds(cards: Iterable[Scorecard]) -> Iterator[Answer]:
    for card in cards:
        for bug in card.bugs:
            alone = bug.fixed and not (bug.hints or bug.triages)
            mark: Mark = "right" if alone else "partly" if bug.found else "wrong"
            yield Answer(
                category=bug.category,
                kind=ROUND,
                mark=mark,
                seconds=0.0,  # of one bug alone is not known
                at=card.started + card.seconds,
            )


# ---------------------------------------------------------------- figures


def build_stats(answers: Sequence[Answer]) -> Stats:
    """By category and by kind of question, the weakest first and last what is no kind of bug: every
    page that names what is weak takes this order."""
    return Stats(
        answers=len(answers),
        right=sum(answer.right for answer in answers),
        categories=(rows := _by([(answer.category, answer) for answer in answers])),
        kinds=_by([(answer.kind, answer) for answer in answers]),
        weak=tuple(r for r in rows if r.name in CATEGORIES and r.lately_share < GOOD),
    )


def _by(pairs: Sequence[tuple[str, Answer]]) -> tuple[CategoryStats, ...]:
    groups: dict[str, list[Answer]] = {}
    for name, answer in pairs:
        groups.setdefault(name, []).append(answer)
    rows = [_row(name, group) for name, group in groups.items()]
    return tuple(sorted(rows, key=_strength))


def _strength(row: CategoryStats) -> tuple[bool, float, int, str]:
    """Of those that were right as seldom, that which was asked more often is weaker for certain."""
    return row.name not in CATEGORIES, row.lately_share, -len(row.lately), row.name


def _row(name: str, answers: Sequence[Answer]) -> CategoryStats:
    times = sorted(answer.seconds for answer in answers if answer.seconds) or [0.0]
    return CategoryStats(
        name=name,
        answers=len(answers),
        right=sum(answer.right for answer in answers),
        median_seconds=(times[len(times) // 2] + times[(len(times) - 1) // 2]) / 2,
        lately=tuple(answer.right for answer in answers[-LATELY:]),
        earlier=tuple(answer.right for answer in answers[:-LATELY]),
    )

"""Rounds of other formats than debugging a program: review, incident, implement, explain, mixed.

A round is a list of tasks; each is a question of `attnlab quiz` or a file to write. An event keeps
the verdict on each part that was answered, and all else is read off these events.
"""

from __future__ import annotations

import random
import tomllib
from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from attnlab.errors import Refused
from attnlab.practice.rating import rate_tasks
from attnlab.records import Challenge, from_json
from attnlab.records.practice import WRITTEN, Interview, RoundTask
from attnlab.records.quiz import QuizVerdict
from attnlab.records.scorecard import FormatCard, TaskCard

FILE = Path(__file__).with_name("formats.toml")
TOPIC = "interview"  # of the slugs of these rounds
SEEDS = 10**6  # of the questions
EASY = 2  # the hardest level of a file to fix
CLEAN, MOST_CLEAN = "clean", 2  # code to read without a bug, of a round


class Format(NamedTuple):
    title: str
    minutes: int
    tasks: tuple[str, ...]  # their kinds, in order


@cache
def formats() -> dict[str, Format]:
    found = tomllib.loads(FILE.read_text("utf-8"))
    return {
        name: Format(one["title"], one["minutes"], tuple(one["tasks"]))
        for name, one in found.items()
    }


def draw_tasks(
    chosen: Format, seed: int, challenges: Sequence[Challenge], known: Collection[str] = ()
) -> list[RoundTask]:
    """The tasks of a round, the same for the same seed and `known` slugs, whose files come only
    where no others are left. Files to write come as a ladder: each asks for what is asked next
    after the one before."""
    dice, found = random.Random(f"{chosen.title} {seed}"), list[RoundTask]()
    rungs = iter(_ladder(chosen.tasks.count("implement"), challenges, dice, known))
    bugs = [c for c in challenges if c.kind == "debug" and c.level <= EASY and not c.bugs]
    bugs = [c for c in bugs if c.slug not in known] or bugs
    for kind in chosen.tasks:
        if kind in WRITTEN:
            one = next(rungs, None) if kind == "implement" else dice.choice(bugs or [None])
            name = one.slug if one else ""
        else:
            name = f"{kind}.{dice.randrange(SEEDS)}"
        found += [RoundTask(kind=kind, id=name)] * bool(name)
    if not found:
        raise Refused("the catalogue has nothing that such a round asks for", "", "--catalogue")
    return found


def _ladder(
    count: int, challenges: Sequence[Challenge], dice: random.Random, solved: Collection[str]
) -> Sequence[Challenge]:
    """So many files to write, as far as one follows the other; few of them solved."""
    known = {c.name: c for c in challenges if c.kind == "implement"}
    ladders = []
    for first in known.values():
        ladder = [first]
        while (following := known.get(ladder[-1].then)) and following not in ladder:
            ladder.append(following)
        ladders.append(ladder[:count])
    longest = max(map(len, ladders), default=0)
    ladders = [one for one in ladders if len(one) == longest]
    old = [sum(c.slug in solved for c in ladder) for ladder in ladders]
    fresh = [one for one, count in zip(ladders, old, strict=True) if count == min(old)]
    return dice.choice(fresh or [[]])


def with_bugs(tasks: Sequence[RoundTask], category: Callable[[str], str]) -> list[RoundTask]:
    """The tasks, at most two of them code without a bug, by the `category` of a question."""
    found, clean = list(tasks), 0
    for at, task in enumerate(tasks):
        if task.kind == "spot" and category(task.id) == CLEAN:
            clean += 1
            while clean > MOST_CLEAN and category(found[at].id) == CLEAN:
                seed = int(found[at].id.partition(".")[2]) + 1
                found[at] = RoundTask(kind=task.kind, id=f"{task.kind}.{seed}")
    return found


# ---------------------------------------------------------------- what became of it


def task_cards(interview: Interview) -> tuple[TaskCard, ...]:
    """What became of each task so far: one is asked after the other."""
    kept = deque((e, from_json(QuizVerdict, e.text)) for e in interview.of_kind("task"))
    hints = [event.question for event in interview.of_kind("hint")]
    cards = []
    for number, task in enumerate(interview.tasks, 1):
        mine = [kept.popleft()] if kept else []
        while mine and kept and mine[-1][1].next:
            mine.append(kept.popleft())
        card = TaskCard(
            number=number,
            task=task,
            verdicts=tuple(verdict for _, verdict in mine),
            category=mine[0][0].category if mine else "",
            hints=hints.count(str(number)),
            fixed=any(v.outcome == "right" for _, v in mine) if task.kind == "fix" else None,
        )
        cards.append(card)
    return tuple(cards)


def open_task(interview: Interview) -> TaskCard | None:
    """The first that is not done."""
    return next((card for card in task_cards(interview) if not card.done), None)


def format_card(interview: Interview, now: float) -> FormatCard:
    """The scorecard, as the events tell it."""
    tasks, events = task_cards(interview), interview.of_kind("task")
    done = events and all(task.done for task in tasks)
    seconds = events[-1].at - interview.started if done else interview.elapsed(now)
    late = bool(interview.minutes) and seconds > 60 * interview.minutes
    return FormatCard(
        number=interview.number,
        slug=interview.slug,
        seconds=seconds,
        minutes=interview.minutes,
        late=late,
        tasks=tasks,
        rating=rate_tasks(tasks, late=late),
        started=interview.started,
    )


def past_formats(interviews: Sequence[Interview]) -> list[FormatCard]:
    """The scorecards of the rounds of other formats that ended."""
    ended = [i for i in interviews if i.tasks and i.closing and i.closing.kind == "end"]
    return [format_card(interview, interview.last) for interview in ended]

"""Rounds of other formats: their tasks are drawn by seed, their cards are read off the events."""

from dataclasses import replace
from itertools import pairwise

import pytest

from attnlab.catalogue.load import load
from attnlab.errors import Refused
from attnlab.practice.formats import (
    draw_tasks,
    format_card,
    formats,
    open_task,
    past_formats,
    task_cards,
    with_bugs,
)
from attnlab.practice.trend import build_trend, summarize
from attnlab.questions.base import kinds
from attnlab.records import to_json
from attnlab.records.practice import WRITTEN, Event, Interview, RoundTask
from attnlab.records.quiz import QuizVerdict

TASKS = (RoundTask(kind="spot", id="spot.1"), RoundTask(kind="implement", id="a/b"))


def task(kind, outcome, at, following="", category="mask", **more):
    verdict = QuizVerdict(
        id=kind, kind=kind, outcome=outcome, answer="x", right="y", message="", next=following,
        seconds=5.0, **more,
    )  # fmt: skip
    return Event(
        kind="task", base="a/b", at=at, question=kind, outcome=outcome, category=category,
        interview=1, text=to_json(verdict),
    )  # fmt: skip


def sat(*events, minutes=10):
    return Interview(
        number=1, slug="interview/mixed", folder="f", bugs=(), minutes=minutes, seed=0,
        started=100.0, tasks=TASKS, events=events,
    )  # fmt: skip


def test_every_kind_of_task_is_known_and_drawn_again_by_its_seed():
    """Formats are data: a kind that nothing draws would end a round."""
    challenges = load().challenges
    for chosen in formats().values():
        assert {*chosen.tasks} <= {*kinds(), *WRITTEN}
        tasks = draw_tasks(chosen, 7, challenges)
        assert [each.kind for each in tasks] == list(chosen.tasks)
        assert tasks == draw_tasks(chosen, 7, challenges)
        assert len({each.id for each in tasks}) == len(tasks)
    drawn = {draw_tasks(formats()["review"], seed, challenges)[0].id for seed in range(20)}
    assert len(drawn) > 15


def test_files_to_write_are_a_ladder():
    """Each goes on from the one before."""
    challenges = load().challenges
    by_slug = {challenge.slug: challenge for challenge in challenges}
    for seed in range(10):
        rungs = [by_slug[t.id] for t in draw_tasks(formats()["implement"], seed, challenges)]
        for one, following in pairwise(rungs):
            assert one.then == following.name
    with pytest.raises(Refused):
        draw_tasks(formats()["implement"], 1, ())


def test_files_that_were_solved_come_last():
    """A round that asks for what was just solved is passed by copying."""
    challenges, mixed = load().challenges, formats()["mixed"]
    first = [task.id for task in draw_tasks(mixed, 7, challenges) if task.is_file]
    later = [task.id for task in draw_tasks(mixed, 7, challenges, first) if task.is_file]
    assert len(later) == len(first)
    assert not {*first} & {*later}
    everything = [challenge.slug for challenge in challenges]
    assert [t.id for t in draw_tasks(mixed, 7, challenges, everything) if t.is_file] == first


def test_a_task_is_open_until_its_last_part_is_answered():
    first = task("spot", "right", 110.0, "spot.1.2")
    assert open_task(sat(first)).number == 1
    done = sat(first, task("spot", "wrong", 120.0))
    assert (open_task(done).number, task_cards(done)[0].outcome) == (2, "partly")
    assert task_cards(done)[0].points == 0.5
    tried = sat(*done.events, task("implement", "wrong", 130.0, "again"))
    assert open_task(tried).number == 2
    passed = sat(*tried.events, task("implement", "right", 140.0))
    assert open_task(passed) is None
    assert [card.points for card in task_cards(passed)] == [0.5, 1.0]  # the last hand-in counts


@pytest.mark.parametrize(
    ("minutes", "late", "rating"), [(10, False, "solid"), (1, True, "partial")]
)
def test_a_round_is_rated_by_its_points_and_its_clock(minutes, late, rating):
    """The clock stops with the last answer, whenever the round is ended."""
    ended = Event(kind="end", base="interview/mixed", at=9000.0, interview=1)
    events = (task("spot", "right", 150.0), task("implement", "right", 190.0), ended)
    hint = Event(kind="hint", base="interview/mixed", question="2", interview=1)
    (card,) = past_formats([sat(hint, *events, minutes=minutes)])
    assert (card.seconds, card.late, card.rating.name) == (90.0, late, rating)
    assert card.points == pytest.approx(1.8)
    assert ("no hint" in card.rating.missing) is (minutes == 10)
    assert not past_formats([sat(*events[:2])])


def test_a_round_that_nothing_was_done_in_is_early():
    card = format_card(sat(), 5000.0)
    assert (card.points, card.rating.name, card.late) == (0.0, "early", True)


def test_rounds_count_in_the_trend():
    """A question about a kind of bug counts with its bugs, and is not held to ask for a fix."""
    ended = Event(kind="end", base="interview/mixed", at=200.0, interview=1)
    events = (task("spot", "wrong", 110.0), task("implement", "right", 120.0, category="shapes"))
    (card,) = past_formats([sat(*events, ended)])
    trend = build_trend([card])
    assert [(one.category, one.bugs, one.found) for one in trend.categories] == [("mask", 1, 0)]
    assert (trend.categories[0].to_fix, trend.categories[0].to_name) == (0, 0)
    fix = replace(sat(task("fix", "right", 120.0), ended), tasks=(RoundTask(kind="fix", id="a/b"),))
    (mask,) = build_trend(past_formats([fix])).categories
    assert (mask.fixed, mask.to_fix) == (1, 1)
    assert (summarize(card).found, summarize(card).bugs, summarize(card).fixed) == (1, 2, None)


def test_of_code_to_read_at_most_two_have_no_bug():
    """Who answers `nothing` each time has learned nothing; the questions stay those of the seed."""
    tasks = [RoundTask(kind="spot", id=f"spot.{number}") for number in (10, 20, 30, 40)]
    clean = {"spot.10", "spot.30", "spot.40", "spot.41"}
    found = with_bugs(tasks, lambda name: "clean" if name in clean else "mask")
    assert [task.id for task in found] == ["spot.10", "spot.20", "spot.30", "spot.42"]


def test_code_to_read_is_found_by_its_line():
    """The kind of the bug, asked next, may be judged otherwise."""
    tasks = (RoundTask(kind="spot", id="spot.1"),)
    for first, found in (("right", 1), ("partly", 0)):
        events = (task("spot", first, 1.0, following="spot.1.2"), task("spot", "wrong", 2.0))
        assert format_card(replace(sat(*events), tasks=tasks), 9.0).found == found

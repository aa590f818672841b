"""A plan of some days follows what is weak, and fits into the hours."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.catalogue.load import load
from attnlab.practice.answers import build_stats
from attnlab.practice.memory import due_cards
from attnlab.practice.plan import MINUTES, Today, build_plan, without_reviews, worked_minutes
from attnlab.records.practice import Answer, Mark

UNSOLVED = [c for c in load().challenges if c.kind == "debug" and c.base]
EMPTY = build_stats([])
DUE = Today(due=5, due_minutes=10.0, reviewed=True)


def answered(category: str, *marks: Mark) -> list[Answer]:
    return [Answer(category=category, kind="fix", mark=m, seconds=1.0, at=1.0) for m in marks]


@settings(max_examples=20, deadline=None)
@given(days=st.integers(1, 30), hours=st.integers(1, 12), count=st.integers(0, 40))
def test_every_day_fits_and_no_challenge_comes_twice(days, hours, count):
    """Whatever the time: no day is longer than asked, and each has something to do."""
    plan = build_plan(EMPTY, UNSOLVED[:count], days, hours, DUE)
    assert [day.number for day in plan] == list(range(1, days + 1))
    assert all(0 < day.minutes <= 60 * hours for day in plan)
    started = [s.command for d in plan for s in d.steps if s.command.startswith("attnlab start")]
    assert len(started) == len(set(started)) <= count


def test_what_is_weak_comes_before_what_is_new_and_that_before_what_is_good():
    """The plan adapts to results."""
    one = {c.category: c for c in UNSOLVED}
    weak, new, good = (replace(one[name], level=1) for name in ("mask", "positions", "attention"))
    stats = build_stats([*answered("mask", "wrong"), *answered("attention", "right", "right")])
    plan = build_plan(stats, [good, new, weak], 1, 2)
    started = [s.command for s in plan[0].steps if s.command.startswith("attnlab start")]
    assert started == [f"attnlab start {c.name}" for c in (weak, new, good)][: len(started)]
    assert len(started) >= 2


def test_what_was_done_today_is_left_out_of_today():
    """Five questions, a challenge and a round leave of two hours what they did not take."""
    done = [replace(a, kind="why") for a in answered("loss", *["right"] * 5)]
    done += [*answered("mask", "right"), replace(done[0], kind="round")]
    plan = build_plan(build_stats(done), UNSOLVED, 2, 2, Today(done, 85))
    commands = [step.command for step in plan[0].steps]
    assert len(commands) == 2
    assert all(command.startswith("attnlab start") for command in commands)
    assert plan[1].steps[1].command.startswith("attnlab quiz")


def test_what_is_asked_next_about_the_same_code_is_no_question_of_its_own():
    """After one question of three parts, four are left of five."""
    parts = [
        Answer(category="shapes", kind="shapes", mark="right", seconds=9.0, at=1.0, follows=n > 0)
        for n in range(3)
    ]
    first = build_plan(build_stats(parts), UNSOLVED, 1, 1, Today(parts, 1.0))[0].steps[0]
    assert (first.command, first.why) == ("attnlab quiz shapes --count 4", "4 questions more")


def test_a_day_keeps_what_it_promised():
    """Whoever did the first steps finds the round of the day there still, if something is due and
    the steps took as long as they should."""
    first = build_plan(EMPTY, UNSOLVED, 2, 2)[0]
    assert first.steps[-1].command == "attnlab interview start"
    done = [replace(a, kind="shapes") for a in answered("shapes", *["wrong"] * 5)]
    done += answered("mask", "right", "wrong", "right")
    stats = build_stats(done)
    for worked in (55, 60):
        rest = build_plan(stats, UNSOLVED, 2, 2, DUE._replace(answers=done, minutes=worked))[0]
        assert "attnlab interview start" in rest.steps[-1].command
        assert rest.minutes <= 120 - worked
    assert not build_plan(stats, UNSOLVED, 2, 2, DUE._replace(answers=done, minutes=119))[0].steps


def test_whatever_is_done_leaves_less():
    """However fast it is done, and whether it was right: the day of a plan ends."""
    done, before = list[Answer](), build_plan(EMPTY, UNSOLVED, 2, 2)[0].minutes
    steps = [("shapes", "wrong")] * 5 + [("fix", "right"), ("fix", "wrong"), ("fix", "right")]
    for kind, mark in [*steps, ("round", "wrong")]:
        done += [replace(a, kind=kind) for a in answered("mask", mark)]
        left = build_plan(build_stats(done), UNSOLVED, 2, 2, Today(done, 1.0 * len(done)))[0]
        assert left.minutes < before
        before = left.minutes
    assert before == 0


def test_what_was_due_is_no_question_of_the_day():
    """A review leaves the questions of a day to be asked, whatever kinds it asked."""
    (card,) = due_cards(answered("mask", "wrong"), MINUTES, 1e9)
    assert without_reviews(answered("mask", "right", "wrong"), [card]) == answered("mask", "wrong")


def test_a_round_that_is_going_on_is_no_second_one():
    """What is left of its clock comes first."""
    plan = build_plan(EMPTY, UNSOLVED, 1, 2, Today(minutes=20.0, going_on=40.0))
    commands = [step.command for step in plan[0].steps]
    assert (commands[0], plan[0].steps[0].minutes) == ("attnlab interview status", 40.0)
    assert not any(command.startswith("attnlab interview start") for command in commands)


def test_time_that_two_things_share_is_counted_once():
    """A challenge that was under way while questions were answered, within an interview."""
    assert worked_minutes([(600, 1200), (0, 900), (660, 720), (3000, 3060)]) == 21


def test_the_round_is_about_what_is_weak_but_for_the_last_day():
    """Bugs of training loops stand in programs alone, so the round practises them."""
    stats = build_stats([*answered("loss", "wrong"), *answered("mask", "right")])
    plan = build_plan(stats, UNSOLVED, 2, 2)
    rounds = [s.command for d in plan for s in d.steps if "interview" in s.command]
    assert rounds == ["attnlab interview start --about loss", "attnlab interview start"]


def test_what_is_begun_goes_on():
    """Starting it again would be refused: its file is there."""
    begun = {UNSOLVED[0].slug}
    steps = build_plan(EMPTY, UNSOLVED, 1, 2, Today(begun=begun))[0].steps
    commands = [step.command for step in steps]
    assert f"attnlab watch {UNSOLVED[0].name}" in commands
    assert f"attnlab start {UNSOLVED[0].name}" not in commands

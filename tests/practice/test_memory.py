"""What is due again, by FSRS: what was wrong soon, what was right later."""

from __future__ import annotations

import subprocess
import sys

from attnlab.practice.memory import due_cards, fill_minutes, join_rounds
from attnlab.records.practice import Answer, Mark

DAY = 86400.0
MINUTES = {"": 2.0, "fix": 15.0}


def answer(mark: Mark, at: float, category: str = "mask", kind: str = "spot") -> Answer:
    return Answer(category=category, kind=kind, mark=mark, seconds=30.0, at=at)


def test_what_was_wrong_is_due_before_what_was_right():
    """A wrong answer is due within minutes, a right one on another day; the forgotten first."""
    found = [answer("wrong", 0.0), answer("right", 0.0, "loss"), answer("right", 900.0, "loss")]
    soon = due_cards(found, MINUTES, 3600.0)
    assert [(card.category, card.kind) for card in soon] == [("mask", "spot")]
    later = due_cards(found, MINUTES, 30 * DAY)
    assert [card.category for card in later] == ["mask", "loss"]
    assert later[0].recall < later[1].recall <= 1


def test_a_right_answer_is_not_asked_again_on_its_day():
    """What was wrong stands first, whatever the schedule thinks is still remembered."""
    assert not due_cards([answer("right", 0.0)], MINUTES, DAY / 2)
    found = [answer("right", 0.0, "loss"), answer("wrong", 29 * DAY)]
    cards = due_cards(found, MINUTES, 30 * DAY)
    assert [(card.category, card.last) for card in cards] == [("mask", "wrong"), ("loss", "right")]


def test_a_card_is_a_kind_of_question_about_a_kind_of_bug():
    """Two answers of a kind are two reviews of one card, whichever variant was asked."""
    found = [answer("wrong", 0.0), answer("wrong", 60.0), answer("wrong", 120.0, kind="fix")]
    assert len(due_cards(found, MINUTES, DAY)) == 2
    assert due_cards(found, MINUTES, DAY) == due_cards(found, MINUTES, DAY)


def test_the_minutes_hold_what_fits_and_nothing_is_lost():
    """A long thing is done now only where it fits; it is shown for later, as the shortest is where
    nothing fits."""
    cards = due_cards([answer("wrong", 0.0, name) for name in "abcdefgh"], MINUTES, DAY)
    long = due_cards([answer("wrong", 0.0, kind="fix")], MINUTES, DAY)
    assert fill_minutes([*long, *cards], 10) == (cards[:5], long, 3)
    assert fill_minutes(cards, 1) == ([], cards[:1], 7)


def test_bugs_of_a_round_are_due_as_one_round():
    """Four that were missed are no four hours."""
    found = [answer("wrong", 0.0, name, "round") for name in ("mask", "loss")]
    (card,) = join_rounds(due_cards(found, MINUTES, DAY))
    assert (card.category, card.noun, card.count) == ("mask, loss", "interview", 1)


def test_other_commands_do_not_load_the_scheduler():
    """It takes as long to import as a small command runs."""
    code = (
        "import sys, attnlab.cli as c; c.run(['stats', '--help']); assert 'fsrs' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

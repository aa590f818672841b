"""The page that says which bugs a user's tests let through."""

from __future__ import annotations

from dataclasses import replace

from attnlab.records.trial import SuiteStrength, Trial
from attnlab.render.mutate import MutatePage
from attnlab.render.screen import plain_text

MISSED = Trial(
    base="my.py",
    mutation="softmax-axis",
    line=36,
    before="w = s.softmax(dim=-1)",
    after="w = s.softmax(dim=-2)",
    fate="survived",
    reason="output differs by 0.3 at B=2",
)
KILLED = replace(MISSED, fate="killed", reason="tests/test_my.py::test_sum")


def page(*trials: Trial, unproved: int = 0) -> MutatePage:
    found = SuiteStrength(
        module="my.py", suite="tests", tests=3, seconds=0.2, trials=trials, unproved=unproved
    )
    return MutatePage(measured=found)


def test_a_survivor_is_a_diff_with_what_it_does() -> None:
    """The reader sees the line, the bug, the change, its effect and the score."""
    text = plain_text(page(MISSED, KILLED, KILLED, unproved=1).show, 80)
    told = ("my.py:36  softmax-axis", "- w = s.softmax(dim=-1)", "+ w = s.softmax(dim=-2)")
    assert all(
        part in text for part in (*told, "output differs by 0.3", "2 of 3 bugs killed (67%)")
    )
    assert "1 survivor could not be compared" in " ".join(text.split())


def test_the_document_counts_what_the_page_shows() -> None:
    """A script reads the score and the survivors, and no killed mutant."""
    document = page(MISSED, KILLED, replace(MISSED, fate="equivalent")).document()
    assert (document["killed"], document["equivalent"], document["survived"]) == (1, 1, 1)
    assert document["score"] == 0.5
    assert [each["line"] for each in document["survivors"]] == [36]


def test_tests_that_see_everything_are_praised_in_a_line() -> None:
    """Without survivors there is nothing to do next."""
    text = plain_text(page(KILLED).show, 80)
    assert "1 of 1 bugs killed (100%): every bug is noticed" in text
    assert "next:" not in text

"""One diagnosis out of several, each beside another right file."""

from attnlab.diagnosis.pool import agreed
from attnlab.records.diagnosis import Diagnosis


def named(line, relation, end_line=0, their_line=9, confirmed=False):
    return Diagnosis(
        file="mine.py",
        line=line,
        end_line=end_line or line,
        source="",
        relation=relation,
        message="",
        confidence=0.6,
        confirmed=confirmed,
        their_line=their_line,
    )


def test_what_says_how_lines_are_wrong_is_taken():
    """Before what only says that something from here to there is."""
    vague = (named(23, "other", end_line=30),)
    exact = (named(23, "axes-mixed"), named(30, "axes-mixed"))
    assert agreed([vague, exact]) == exact


def test_values_of_the_reference_tell_more_than_changed_values_of_mine():
    """Where they name other lines."""
    guessed = (named(22, "order", their_line=0),)
    founded = (named(42, "axes-mixed"), named(43, "axes-mixed"))
    assert agreed([guessed, founded]) == founded


def test_what_is_confirmed_is_taken_first():
    """Also where others agree; and nothing of nothing."""
    sure = (named(7, "scale", confirmed=True),)
    other = (named(9, "sign"),)
    assert agreed([other, sure, other]) == sure
    assert agreed([(), ()]) == ()

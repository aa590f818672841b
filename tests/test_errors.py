"""The kinds of errors, and the exit codes that scripts rely on."""

import pytest

from attnlab.errors import AttnlabError, Broken, Refused, Unreadable


@pytest.mark.parametrize(
    ("kind", "outcome", "code"),
    [
        (Refused, "refused", 2),
        (Unreadable, "unreadable", 2),
        (Broken, "error", 70),
    ],
)
def test_each_kind_has_its_outcome_and_exit_code(kind, outcome, code):
    """The command contract: an outcome of the error document and an exit code for each kind."""
    assert (kind.outcome, kind.exit_code) == (outcome, code)
    assert issubclass(kind, AttnlabError)


def test_an_error_carries_message_hint_and_place():
    """What the terminal and the JSON error document show comes from these three."""
    error = Unreadable("a.py is empty", "Write into it.", "a.py")
    assert (error.message, error.hint, error.where) == ("a.py is empty", "Write into it.", "a.py")
    assert str(error) == "a.py is empty"


def test_hint_and_place_may_be_left_out():
    """A raise site that knows no remedy still gives strings, never None."""
    error = Broken("the judge died")
    assert (error.hint, error.where) == ("", "")

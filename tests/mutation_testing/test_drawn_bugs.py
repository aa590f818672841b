"""Which bugs are put into a copy of a person's own module: those that somebody might have typed."""

import pytest

from attnlab.catalogue.load import load
from attnlab.mutation_testing.drawing import Drawer, _tidy, draw_from_base
from attnlab.mutation_testing.operators.base import Edit, Mutant
from attnlab.target.challenge_job import challenge_job

RIGHT = """\
def forward(self, x):
    length = x.shape[1]
    table = self.table[:length]
    # before the softmax, half of it
    scores = (x @ x.mT) / self.width**0.5
    scores = scores.masked_fill(~self.mask, float("-inf"))
    return scores.softmax(-1) @ x + table
"""


def mutant(before, after):
    line = RIGHT[: RIGHT.index(before)].count("\n") + 1
    old = RIGHT.splitlines()[line - 1]
    new = old.replace(before, after)
    text = RIGHT.replace(old, new)
    return Mutant(mutation="x", line=line, before=old, after=new, text=text)


@pytest.mark.parametrize(
    ("before", "after", "shows"),
    [
        ("softmax(-1)", "softmax(-2)", False),
        ("~self.mask", "self.mask", False),
        ("softmax(-1)", "softmax(-0)", True),
        ("[:length]", "[-length:]", False),
        ("x.mT", "x.mT.half().float()", True),
        ("x.mT", "x.flip(0).mT", True),
        ('float("-inf")', '-float("inf") * -1', True),
        ("~self.mask", "~(~self.mask)", True),
        ("[:length]", "", True),  # length is made, and used no more
    ],
)
def test_a_bug_that_shows_at_a_glance_is_not_drawn(before, after, shows):
    """Words that the module has nowhere, signs twice, names that are no longer used."""
    assert Drawer(None, RIGHT, None)._stands_out(mutant(before, after)) is shows


def test_a_line_with_a_comment_comes_last():
    """It says what would be right."""
    drawer = Drawer(None, RIGHT, None)
    lines = ("softmax(-1)", "self.width", "[:length]")
    edits = [Edit(splices=((start, start + 1, ""),)) for start in map(RIGHT.index, lines)]
    assert [drawer._is_commented(("x", edit)) for edit in edits] == [False, True, False]


@pytest.mark.parametrize(
    ("before", "after", "tidy"),
    [
        ("[:length]", "[-(length):]", "[-length:]"),
        ("~self.mask", "(~self.mask)[:1]", "(~self.mask)[:1]"),  # these mean something
        ("self.width", "(x.shape[-1])", "x.shape[-1]"),
    ],
)
def test_parentheses_that_mean_nothing_go(before, after, tidy):
    found = _tidy(mutant(before, after))
    assert tidy in found.after
    assert found.text == mutant(before, tidy).text


def test_every_right_version_of_a_base_is_graded_by_its_own_given_parts(monkeypatch):
    """One that is written in another way has no text that the edits of a task's blanks are of."""
    base = next(c for c in load().challenges if c.given and c.alternatives)
    drawn = []
    monkeypatch.setattr(Drawer, "draw", lambda self, *_, **__: drawn.append(self))
    for seed in range(9):
        draw_from_base(base, seed, None)
    for one in drawn:
        challenge_job(one.challenge, one._code(one.right), stages=("check",))  # refuses none
    assert len({one.right for one in drawn}) == 1 + len(base.alternatives)

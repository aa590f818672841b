"""The page that says how strong the grader is, on a screen, as a document and as Markdown."""

from __future__ import annotations

import io

import pytest

from attnlab.mutation_testing.measure import Strength
from attnlab.records.trial import Trial
from attnlab.render.screen import Screen
from attnlab.render.strength import StrengthPage


def trial(fate, reason="", flips=False):
    return Trial(
        base="solution.py",
        mutation="softmax-axis",
        line=36,
        before="w = s.softmax(dim=-1)",
        after="w = s.softmax(dim=-2)",
        fate=fate,
        reason=reason,
        flips=flips,
    )


KILLED, SAME = trial("killed", "causality: it leaks"), trial("equivalent")
SURVIVED = trial("survived", "output differs by 0.3")


def strong(*trials, wrongs=()):
    one = Strength(slug="attention/too-sharp", right=4, trials=trials, wrongs=wrongs)
    return StrengthPage(measured=(one,), seeds=3)


def shown(page):
    file = io.StringIO()
    page.show(Screen(file=file, width=100))
    return file.getvalue()


def test_a_strong_grader_is_told_in_one_line():
    """The figures in all end the page."""
    page = strong(KILLED, KILLED, SAME)
    assert page.good
    last = " ".join(shown(page).split("\n\n")[-1].split())
    assert "2 of 2 bugs killed (100.00%), 1 equivalent mutant, 0 of 4 right files rejected" in last
    assert "survived:" not in shown(page)


def test_a_row_fits_80_columns():
    """No figure is cut off, however long the name of a challenge."""
    one = Strength(slug="position/sinusoidal-from-scratch", right=6, trials=(KILLED,), wrongs=())
    file = io.StringIO()
    StrengthPage(measured=(one,)).show(Screen(file=file, width=80))
    assert "sinusoidal-from-scratch" in file.getvalue()
    assert "…" not in file.getvalue()


def test_a_survivor_is_shown_with_its_change():
    """Whoever strengthens the checks sees where, what and how it differs."""
    page = strong(KILLED, SURVIVED)
    text = shown(page)
    assert not page.good
    assert "solution.py:36" in text
    assert "- w = s.softmax(dim=-1)" in text
    assert "+ w = s.softmax(dim=-2)" in text
    assert "output differs by 0.3" in text
    assert "1 of 2 bugs killed (50.00%)" in text


@pytest.mark.parametrize(
    "page",
    [strong(KILLED, wrongs=("solution.py: finite: NaN",)), strong(trial("killed", "", True))],
)
def test_rejected_right_files_and_flips_are_no_success(page):
    """Both are told, each with its place."""
    assert not page.good
    assert "solution.py" in shown(page)
    assert page.document()["outcome"] == "found"


def test_the_document_has_counts_and_survivors():
    """Scripts find every figure of the table, and the survivors in full."""
    document = strong(KILLED, SAME, SURVIVED).document()
    row = document["challenges"][0]
    assert (row["killed"], row["equivalent"], row["survived"], row["right files"]) == (1, 1, 1, 4)
    assert document["survivors"][0]["mutation"] == "softmax-axis"
    assert document["seeds"] == 3


def test_the_markdown_says_how_it_was_made_and_counts_by_mutation():
    """The page in docs/ is generated: it says so, and shows each operator's share."""
    text = strong(KILLED, SAME, SURVIVED).markdown()
    assert text.startswith("<!-- Made by `make strength`")
    assert "| attention/too-sharp | 4 | 0 | 3 | 1 | 1 | 1 |" in text
    assert "| softmax-axis | 1 | 1 | 1 |" in text
    assert "  + w = s.softmax(dim=-2)" in text
    assert "No mutant survived." in strong(KILLED).markdown()

"""Hints of a round skip the places that a person changed, and begin anew with a new round."""

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.programs import compose, read_program
from attnlab.practice.hints import hint_event, hint_texts, hints_before, next_hint
from attnlab.progress import Progress
from attnlab.records.practice import Event

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
BUGS = ("mask-one-late", "no-zero-grad")
GIVEN = compose(PROGRAM, BUGS)


@pytest.fixture
def store(tmp_path):
    with Progress.open(tmp_path) as found:
        yield found


def test_hints_go_from_bug_to_bug():
    """Three of the first, three of the second, then none."""
    shown = []
    while hint := next_hint(PROGRAM, BUGS, None, GIVEN, shown):
        shown.append(hint)
    assert shown == [(bug, number) for bug in BUGS for number in range(3)]
    assert hint_texts(PROGRAM, BUGS, None, shown)[3][0] == "bug 2 of 2, hint 1 of 3"


@pytest.mark.parametrize("bug", BUGS)
def test_a_place_that_was_changed_comes_last(bug):
    """Whether wrong lines were replaced or missing ones written again."""
    other = next(b for b in BUGS if b != bug)
    fixed = compose(PROGRAM, [other])
    assert next_hint(PROGRAM, BUGS, None, fixed, ()) == (other, 0)
    seen = [(other, number) for number in range(3)]
    assert next_hint(PROGRAM, BUGS, None, fixed, seen) == (bug, 0)


def test_a_new_round_has_its_own_hints(store):
    """Those of the round before are not counted, nor those of another program."""
    slug = PROGRAM.slug
    store.add_event(Event(kind="start", base=slug))
    store.add_hint(slug, hint_event(PROGRAM, ("mask-one-late", 0), None))
    store.add_event(Event(kind="hint", base="programs/other", bug="mask-one-late", question="1"))
    assert hints_before(store, PROGRAM, BUGS, None) == (("mask-one-late", 0),)
    store.add_event(Event(kind="start", base=slug))
    assert hints_before(store, PROGRAM, BUGS, None) == ()

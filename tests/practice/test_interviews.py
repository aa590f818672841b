"""The clock of an interview, and which bugs it draws."""

import sqlite3
import time
from itertools import combinations

import pytest

from attnlab.catalogue.load import load
from attnlab.catalogue.programs import compose, count_about, draw_bugs, read_program
from attnlab.errors import Refused
from attnlab.practice import interviews
from attnlab.practice.interviews import (
    all_interviews,
    begin,
    choose_program,
    clock_text,
    current,
    make_event,
)
from attnlab.progress import Progress


@pytest.fixture(scope="module")
def programs():
    from pathlib import Path

    return [read_program(Path(entry.folder)) for entry in load().programs]


@pytest.fixture
def kept(tmp_path):
    with Progress.open(tmp_path) as found:
        yield found


def at(monkeypatch, moment):
    monkeypatch.setattr(interviews.time, "time", lambda: moment)
    monkeypatch.setattr(time, "time", lambda: moment)


def test_the_clock_runs_on_and_never_back(kept, programs, monkeypatch):
    """It stands still while the machine's clock is set back, and ends with the interview."""
    at(monkeypatch, 1000.0)
    interview = begin(kept, programs[0].slug, 60, 7, folder=programs[0].name)
    assert (interview.number, interview.elapsed(1000.0), interview.seed) == (1, 0.0, 7)
    at(monkeypatch, 1600.0)
    kept.add_event(make_event(interview, "note", text="x"))
    interview = current(kept)
    assert interview.elapsed(1600.0) == 600.0
    assert interview.elapsed(900.0) == 600.0
    assert interview.left(1660.0) == 60 * 60 - 660
    assert clock_text(interview, 1660.0) == "49 of 60 minutes left"
    assert clock_text(interview, 1000.0 + 3600 + 90) == "the time ran out 90 seconds ago"
    at(monkeypatch, 1700.0)
    kept.add_event(make_event(interview, "end"))
    assert current(kept) is None
    assert all_interviews(kept)[0].elapsed(99999.0) == 700.0


def test_a_stage_has_a_clock_of_its_own(kept, programs, monkeypatch):
    """That of the bugs is over; it stands once the stage has passed."""
    at(monkeypatch, 1000.0)
    interview = begin(kept, programs[0].slug, 60, 7, folder=programs[0].name)
    for moment, outcome in ((1600.0, "open"), (2000.0, "failed")):
        at(monkeypatch, moment)
        kept.add_event(make_event(interview, "stage", question="cache", outcome=outcome))
    assert clock_text(current(kept), 1000.0 + 9000) == "140 minutes in stage cache, without a limit"
    kept.add_event(make_event(interview, "stage", question="cache", outcome="passed"))
    assert clock_text(current(kept), 1000.0 + 9000) == "6 minutes in stage cache, without a limit"


def test_a_clock_that_just_began_shows_all_its_minutes(kept, programs, monkeypatch):
    """The nearest minute is shown, and the seconds, too, once there are few minutes."""
    at(monkeypatch, 1000.0)
    interview = begin(kept, programs[0].slug, 60, 7, folder=programs[0].name)
    for seconds, says in (
        (0.4, "60"), (40, "59"), (3445, "2:35"), (3540.5, "60 seconds")
    ):  # fmt: skip
        assert clock_text(interview, 1000 + seconds) == f"{says} of 60 minutes left"


def test_two_at_once_are_refused(kept, programs):
    """The one that is going on is named; a dropped one makes room, with the next number."""
    first = begin(kept, programs[0].slug, 0, 1, folder=programs[0].name)
    with pytest.raises(Refused, match=f"interview 1, {programs[0].name}, is going on"):
        begin(kept, programs[1].slug, 0, 1, folder=programs[1].name)
    kept.add_event(make_event(first, "abandon"))
    assert begin(kept, programs[1].slug, 0, 1, folder=programs[1].name).number == 2


def undo(program, files, ids, gone):
    """The files with the lines of some patches as they were, found by where they stand by now."""
    moved, found = {}, dict(files)
    edits = [(edit, i in gone) for i in ids for edit in program.patches[i].edits]
    for edit, undone in sorted(edits, key=lambda pair: pair[0].start):
        text, at = found[edit.file], edit.start + moved.get(edit.file, 0)
        assert text[at : at + len(edit.new)] == edit.new
        there = edit.old if undone else edit.new
        found[edit.file] = text[:at] + there + text[at + len(edit.new) :]
        moved[edit.file] = moved.get(edit.file, 0) + len(there) - len(edit.old)
    return found


def test_a_round_about_a_kind_of_bug_has_as_many_as_are_counted(programs):
    """By that count a program is drawn for `--about`."""
    for seed, program in enumerate(programs):
        for about in {bug.category for bug in program.bugs}:
            drawn = [program.patches[i] for i in draw_bugs(program, seed, 4, 3, about)]
            found = sum(each.category == about for each in drawn if not each.decoy)
            assert found >= count_about(program, about, 4, 3)


def test_what_was_seen_comes_only_where_little_else_is_left(programs):
    """A bug that a quiz told is no find."""
    for program in programs:
        first = draw_bugs(program, 1, 4, 5)
        seen = {i for i in first if not program.patches[i].decoy}
        again = draw_bugs(program, 1, 4, 5, seen=seen)
        assert not seen & {*again}


def test_200_rounds_are_solved_by_undoing_their_bugs_and_by_nothing_less(programs):
    """No two places overlap, the same seed draws the same, decoys may stay; each choice of fixes
    is another text. `benchmarks.rounds --solve` grades them."""
    for seed in range(200):
        program = programs[seed % len(programs)]
        ids = draw_bugs(program, seed, 4, 3)
        assert ids == draw_bugs(program, seed, 4, 3)
        patches = [program.patches[i] for i in ids]
        bugs = [patch.id for patch in patches if not patch.decoy]
        decoys = [patch.id for patch in patches if patch.decoy]
        assert (len(bugs), len(decoys) <= 1) == (4, True)  # a decoy may have no place of its own
        assert not any(a.overlaps(b) for a, b in combinations(patches, 2))
        files = compose(program, ids)
        assert undo(program, files, ids, bugs) == compose(program, decoys)
        assert undo(program, files, ids, ids) == program.files
        texts = {
            tuple(undo(program, files, ids, gone).values())
            for count in range(5)
            for gone in combinations(bugs, count)
        }
        assert len(texts) == 2**4


def test_no_bug_is_above_the_level_where_there_are_enough(programs):
    """Level 2 draws none of level 3; more bugs than there are places are refused."""
    program = programs[0]
    ids = draw_bugs(program, 0, 3, 2)
    assert all(program.patches[i].level <= 2 for i in ids if not program.patches[i].decoy)
    with pytest.raises(Refused, match="has no 99 bugs"):
        draw_bugs(program, 0, 99, 5)


def test_half_of_the_bugs_are_of_a_kind_that_is_asked_for(programs):
    """The rest is not, so that the kind gives no place away."""
    program = next(p for p in programs if p.name == "reverse-seq2seq")
    for seed in range(10):
        ids = draw_bugs(program, seed, 4, 5, "mask")
        assert sum(program.patches[i].category == "mask" for i in ids) >= 2


def test_the_program_that_was_practised_least_comes_next(kept, programs):
    """A program that was begun comes again after all others."""
    slugs = [program.slug for program in programs]
    first = choose_program(slugs, kept, 1)
    chosen = next(p for p in programs if p.slug == first)
    kept.add_event(make_event(begin(kept, chosen.slug, 0, 1), "abandon"))
    assert all(choose_program(slugs, kept, seed) != first for seed in range(20))


def test_grades_of_an_older_store_become_events(tmp_path):
    """What was done before there were events is there as such, and nothing of it is lost."""
    with Progress.open(tmp_path) as kept:
        kept.add_grade("a/b", "passed", 1.0, "b.py")
        kept.add_hint("a/c")
    with sqlite3.connect(tmp_path / "progress.db") as db:
        db.execute("DROP TABLE event")
        db.execute("PRAGMA user_version = 2")
    with Progress.open(tmp_path) as kept:
        assert [(e.kind, e.base, e.outcome) for e in kept.events()] == [("grade", "a/b", "passed")]
        assert kept.events()[0].at > 1e9
        assert kept.challenge_progress("a/c").hints == 1

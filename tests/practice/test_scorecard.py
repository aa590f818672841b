"""The scorecard of an interview, from its events alone."""

import json
from dataclasses import replace

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.places import bug_lines, changed_spans
from attnlab.catalogue.programs import compose, count_changed_lines, read_program
from attnlab.practice.answers import all_answers
from attnlab.practice.changes import describe_changes
from attnlab.practice.interviews import report_text
from attnlab.practice.notes import bugs_at
from attnlab.practice.scorecard import build_scorecard, last_report
from attnlab.practice.trend import build_trend
from attnlab.records.practice import REASON, RIGHT, Event, Interview
from attnlab.records.program import ProgramReport
from attnlab.render.html import as_document
from attnlab.render.scorecard import ScorecardPage
from attnlab.render.screen import plain_text

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
DECOY = "odd-loss-layout"
IDS = ("mask-one-late", DECOY)
GIVEN = compose(PROGRAM, IDS)
FILE, LINE, _ = bug_lines(PROGRAM, IDS)[DECOY][0]


AT_DECOY = Event(kind="note", base=PROGRAM.slug, bug=DECOY, text=f"{FILE}:{LINE} odd layout")


def replace_line(number, *lines):
    old = GIVEN[FILE].splitlines()
    return GIVEN | {FILE: "\n".join([*old[: number - 1], *lines, *old[number:]]) + "\n"}


def card_after(*events, files=GIVEN):
    changes = describe_changes(PROGRAM, IDS, files)
    text = report_text(ProgramReport(outcome="failed"), changes)
    end = Event(kind="end", base=PROGRAM.slug, outcome="failed", text=text)
    interview = Interview(
        number=1, slug=PROGRAM.slug, folder="char-gpt", bugs=IDS, minutes=60, seed=1, started=0.0,
        events=(*events, end),
    )  # fmt: skip
    return build_scorecard(PROGRAM, interview, last_report(interview), 0.0)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_a_decoy_that_was_taken_for_a_bug_is_told(named, changed):
    """Whether a note named it and whether its line was changed; the note is no bug's."""
    note = AT_DECOY
    files = replace_line(LINE, "    loss = 0") if changed else GIVEN
    card = card_after(*[note] * named, files=files)
    (decoy,) = card.decoys
    assert (decoy.named, decoy.changed) == (named, changed)
    assert card.slips == (note.text,) * named


def note_at(seconds, text, outcome=REASON):
    file, line, _ = bug_lines(PROGRAM, IDS)["mask-one-late"][0]
    return Event(kind="note", base=PROGRAM.slug, bug="mask-one-late", outcome=outcome,
                 text=f"{file}:{line} {text}", seconds=seconds)  # fmt: skip


@pytest.mark.parametrize("ticked", ["", "said", "stayed"])
def test_the_person_judges_what_a_note_says(ticked):
    """Beside what is true; until then it is open, and a note with another reason names nothing."""
    notes = [note_at(5.0, "one late"), note_at(9.0, "the mask is late")]
    (question,) = [card for card in card_after(*notes).follow_ups if card.note]
    assert "one late" in question.question
    assert question.answer == PROGRAM.patches["mask-one-late"].why
    answer = Event(kind="answer", base=PROGRAM.slug, bug=question.bug,
                   question=question.question, outcome=ticked)  # fmt: skip
    (bug,) = card_after(*notes, *[answer] * bool(ticked)).bugs
    assert (bug.named, bug.named_at, bug.reason) == (ticked != "stayed", 5.0, ticked or "open")


def test_a_note_that_takes_code_for_right_is_held_against_nobody():
    """It names no bug, is no slip, and at a decoy it is what there is to see."""
    card = card_after(note_at(5.0, "nothing is wrong", RIGHT), replace(AT_DECOY, outcome=RIGHT))
    assert (card.bugs[0].named, card.bugs[0].found, card.slips) == (False, False, ())
    assert (card.decoys[0].named, card.decoys[0].cleared) == (False, True)


def test_notes_after_the_hand_in_that_passed_have_no_credit():
    """They are counted apart."""
    passed = Event(kind="submit", base=PROGRAM.slug, outcome="passed", seconds=20.0)
    card = card_after(note_at(30.0, "the mask is late"), passed)
    assert (card.named, card.late_notes) == (0, 1)


@pytest.mark.parametrize(
    ("hand_ins", "counted", "again"),
    [
        ({246.0: "passed"}, 246.0, None),
        ({246.0: "passed", 920.0: "passed"}, 246.0, 920.0),
        ({246.0: "passed", 300.0: "failed"}, 300.0, None),
        ({246.0: "passed", 300.0: "failed", 400.0: "passed", 500.0: "passed"}, 400.0, 500.0),
        ({246.0: "failed", 300.0: "failed"}, 300.0, None),
    ],
)
def test_the_hand_in_that_counts_is_the_first_that_stayed_right(hand_ins, counted, again):
    """Right code that is handed in again costs no time; a hand-in that broke it does."""
    events = [
        Event(kind="submit", base=PROGRAM.slug, outcome=outcome, seconds=seconds)
        for seconds, outcome in hand_ins.items()
    ]
    card = card_after(*events)
    assert (card.seconds, card.again_at, card.submits) == (counted, again, len(events))
    late = card_after(*[replace(event, seconds=event.seconds + 3400) for event in events])
    assert late.late == (counted + 3400 > 3600)


def test_the_card_says_when_it_passed_and_when_it_was_handed_in_last():
    """In the terminal and in the file to be sent."""
    events = [replace(graded(at, True, "submit"), outcome="passed") for at in (246.0, 920.0)]
    card = card_after(*events)
    page = ScorecardPage(card=card, trend=build_trend([card]))
    says = "passed at 4:06 of 60 minutes, last handed in at 15:20"
    assert says in plain_text(page.show, 100)
    assert says in as_document(page, "card")


def test_a_comment_at_a_decoy_changes_nothing():
    """Nor do lines above it: it is found where it stands by now."""
    line = GIVEN[FILE].splitlines()[LINE - 1]
    files = replace_line(LINE, "", "    # odd?", f"{line}  # is this right?")
    assert not card_after(files=files).decoys[0].changed


def test_a_line_in_place_of_another_is_one_changed_line():
    """Not one removed and one added; lines that are new count as well."""
    first = GIVEN[FILE].splitlines()[0]
    assert count_changed_lines(GIVEN, GIVEN) == 0
    assert card_after(files=replace_line(LINE, "x")).changed_lines == 1
    assert card_after(files=replace_line(1, first, "x", "y")).changed_lines == 2


def test_changes_are_those_of_the_last_grade_where_the_files_are_gone():
    """The card does not fall back to none at all."""
    text = json.dumps(describe_changes(PROGRAM, IDS, replace_line(LINE, "x")))
    card = card_after(Event(kind="submit", base=PROGRAM.slug, text=text), files={})
    assert (card.changed_lines, card.decoys[0].changed) == (1, True)


def test_a_bug_says_where_it_stood():
    """In the file as it was given."""
    file, line, _ = bug_lines(PROGRAM, IDS)["mask-one-late"][0]
    assert card_after().bugs[0].places == (f"{file}:{line}",)


def test_a_line_that_a_bug_left_out_is_said_to_be_missing():
    """The line that stands before it is named, and that is no place of the bug."""
    program = read_program(shipped_folder() / "programs" / "vit-patches")
    bug = "rate-falls-with-reports"
    (edit,) = [e for e in program.patches[bug].edits if not e.new.strip()]
    before = program.files[edit.file][: edit.start].count("\n")
    interview = Interview(
        number=1, slug=program.slug, folder="vit-patches", bugs=(bug,), minutes=60, seed=1,
        started=0.0,
    )  # fmt: skip
    card = build_scorecard(program, interview, ProgramReport(outcome="failed"), 0.0)
    assert f"missing below {edit.file}:{before}" in card.bugs[0].places
    page = ScorecardPage(card=card, trend=build_trend([card]))
    assert f"missing below {edit.file}:{before}" in plain_text(page.show, 100)


def graded(seconds, gone, kind="grade"):
    text = json.dumps({"bugs": {"mask-one-late": gone}})
    return Event(kind=kind, base=PROGRAM.slug, outcome="failed", seconds=seconds, text=text)


def test_a_bug_is_fixed_when_a_grade_first_finds_it_gone():
    """A grade that cannot tell changes nothing; that it came back in between is told."""
    (bug,) = card_after(graded(5.0, False), graded(9.0, True), graded(12.0, None)).bugs
    assert (bug.fixed_at, bug.again_at) == (9.0, None)
    back = [graded(9.0, True), graded(12.0, False), graded(15.0, True, "submit")]
    (bug,) = card_after(*back).bugs
    assert (bug.fixed_at, bug.again_at) == (9.0, 15.0)
    page = ScorecardPage(card=card_after(*back), trend=build_trend([card_after(*back)]))
    assert page.document()["grades"] == 2


def test_only_hints_before_a_bug_was_known_count_as_help():
    """One that came after the note did not lead to it."""
    hint = Event(kind="hint", base=PROGRAM.slug, bug="mask-one-late", seconds=10.0)
    note = note_at(5.0, "the mask is late")
    assert card_after(note, hint).bugs[0].hints == 0
    assert card_after(hint).bugs[0].hints == 1
    assert card_after(replace(note, seconds=20.0), hint).bugs[0].hints == 1


def test_the_bugs_took_until_the_first_grade_that_a_stage_opened_on():
    """Not until a hand-in before it that was wrong, nor until a grade that nobody built on."""
    known = [("submit", "failed", 747.0), ("grade", "passed", 836.0), ("stage", "open", 900.0)]
    events = [Event(kind=k, base=PROGRAM.slug, outcome=o, seconds=at) for k, o, at in known]
    assert [card_after(*events[:n]).seconds for n in (2, 3)] == [747.0, 836.0]
    assert card_after(*events).again_at is None


def test_help_that_named_a_bug_is_told_with_it_and_in_the_stats():
    """What a triage or a hint named before it was gone was not found alone; what came after was."""
    early = Event(kind="triage", base=PROGRAM.slug, text="mask-one-late", seconds=3.0)
    named = note_at(5.0, "the mask is one late")
    card = card_after(early, named)
    page = ScorecardPage(card=card, trend=build_trend([card]))
    assert "after 1 triage" in plain_text(page.show, 200)
    fixed = [replace(bug, fixed=True) for bug in (card.bugs[0], replace(card.bugs[0], triages=0))]
    marks = [a.mark for a in all_answers([], {}, [replace(card, bugs=tuple(fixed))])]
    assert marks == ["partly", "right"]
    assert not card_after(named, replace(early, seconds=9.0)).bugs[0].triages


def test_a_triage_names_the_bug_at_whose_line_it_found_something():
    """A decoy and a line far from each bug are none."""
    file, line, _ = bug_lines(PROGRAM, IDS)["mask-one-late"][0]
    assert bugs_at(PROGRAM, IDS, GIVEN, [(file, line), (FILE, LINE)]) == ("mask-one-late",)
    assert not bugs_at(PROGRAM, IDS, GIVEN, [(file, line + 9)])


def test_the_place_of_a_bug_is_the_line_that_is_wrong():
    """An edit holds lines around it, so that it can be found: those are none of the bug's."""
    assert changed_spans("total\n", "total\nscheduler") == [(1, 2)]
    assert changed_spans("optimizer\nscheduler", "optimizer") == [(1, 1)]


def test_a_note_without_a_place_is_listed():
    """It counts for nothing, and is not lost."""
    lost = Event(kind="note", base=PROGRAM.slug, outcome=REASON, text="the loss is odd")
    card = card_after(lost)
    assert (card.slips, card.placeless) == ((), ("the loss is odd",))

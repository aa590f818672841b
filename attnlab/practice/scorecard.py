"""The scorecard of an interview, from its events and from one last grade."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

from attnlab.catalogue.places import bug_lines, changed_spans
from attnlab.practice.changes import DECOYS, LINES, last_changes
from attnlab.practice.interviews import read_details
from attnlab.practice.notes import PLACE
from attnlab.practice.rating import rate
from attnlab.practice.stages import stage_cards
from attnlab.records import GradeOutcome
from attnlab.records.practice import REASON, RIGHT, STAYED, Event, EventKind, Interview
from attnlab.records.program import BugResult, PartResult, Program, ProgramReport
from attnlab.records.scorecard import BugCard, DecoyCard, QuestionCard, Scorecard

GRADED = ("grade", "submit")
HELP: tuple[EventKind, ...] = ("hint", "triage")


def build_scorecard(
    program: Program, interview: Interview, report: ProgramReport, seconds: float
) -> Scorecard:
    """`report` is of the files as they are now, and tells which bugs are gone. `seconds` stand on
    the clock at the end; the hand-in that counts ended it before.

    Where a stage was opened, the bugs were done by then: what comes after is told with the stage.
    """
    opened = next(iter(interview.of_kind("stage")), None)
    first_half, changes = interview, last_changes(interview.events)
    if opened:
        events = interview.events
        first_half = replace(interview, events=events[: events.index(opened)])
        right = [event for event in first_half.events if event.outcome == "passed"]
        changes = last_changes(right or [opened])
        report = _all_fixed(interview, report)
        seconds = opened.seconds
    patches = [program.patches[bug] for bug in interview.bugs]
    bugs = [patch.id for patch in patches if not patch.decoy]
    gone = {result.id: result.fixed for result in report.bugs}
    asked = {event.question for event in interview.of_kind("ask")}
    submitted, counted = interview.hand_ins, interview.counted_hand_in
    ended = counted.seconds if counted else seconds
    cards = tuple(_bug_card(program, interview, bug, gone.get(bug)) for bug in bugs)
    late = bool(interview.minutes) and ended > 60 * interview.minutes
    new_fault = report.new_fault
    hints, triages = (len(first_half.of_kind(kind)) for kind in HELP)
    in_time = _notes_in_time(interview)
    accusing = [event for event in in_time if event.outcome != RIGHT]
    places = {event: event.question or str(PLACE.findall(event.text)) for event in accusing}
    slips = {at: e.text for e, at in places.items() if at != "[]" and not e.is_about(bugs)}
    rating = rate(
        cards,
        right=report.outcome == "passed",
        clean=not new_fault,
        late=late,
        slips=len(slips),
        hints=hints + triages,
    )
    return Scorecard(
        number=interview.number,
        slug=interview.slug,
        title=program.title,
        outcome=report.outcome,
        seconds=ended,
        minutes=interview.minutes,
        late=late,
        bugs=cards,
        parts=report.parts,
        goals=report.goals,
        new_fault=new_fault,
        changed_lines=changes[LINES],
        grades=len(first_half.of_kind("grade")),
        submits=len(submitted),
        again_at=next((e.seconds for e in submitted[-1:] if e.seconds > ended), None),
        started=interview.started,
        hints=hints,
        triages=triages,
        rating=rating,
        slips=tuple(slips.values()),
        placeless=tuple(e.text for e, at in places.items() if at == "[]"),
        late_notes=len(interview.notes) - len(in_time),
        decoys=tuple(
            DecoyCard(
                id=patch.id,
                why=patch.why,
                named=any(event.is_about([patch.id]) for event in accusing),
                cleared=any(e.is_about([patch.id]) and e.outcome == RIGHT for e in in_time),
                changed=patch.id in changes[DECOYS],
            )
            for patch in patches
            if patch.decoy
        ),
        asked=tuple(q for q in program.questions if q.question in asked),
        questions=len(program.questions),
        follow_ups=follow_ups(program, interview),
        stages=stage_cards(program, interview),
    )


def _notes_in_time(interview: Interview) -> list[Event]:
    """The notes that were made before everything was right: what comes after names nothing."""
    until = right_at(interview)
    return [e for e in interview.notes.values() if until is None or e.seconds <= until]


def right_at(interview: Interview) -> float | None:
    """The time on the clock at which everything was handed in right, for the first time."""
    passed = (e.seconds for e in interview.of_kind("submit") if e.outcome == "passed")
    return next(passed, None)


def _all_fixed(interview: Interview, report: ProgramReport) -> ProgramReport:
    bugs = tuple(BugResult(id=bug, fixed=True) for bug in interview.bugs)
    return replace(report, outcome="passed", parts=(), goals=(), bugs=bugs)


def follow_ups(program: Program, interview: Interview) -> tuple[QuestionCard, ...]:
    """The questions about the bugs of a round and the stages that were opened, with what was said
    of the answers."""
    opened = {event.question for event in interview.of_kind("stage")}
    asked = [(bug, program.patches[bug].follow_ups) for bug in interview.bugs]
    asked += [(stage.id, stage.follow_ups) for stage in program.stages if stage.id in opened]
    cards = [
        QuestionCard(bug=subject, question=each.question, answer=each.answer)
        for subject, questions in asked
        for each in questions
    ]
    notes = filter(None, (_note_question(program, interview, bug) for bug in interview.bugs))
    said: Any = {(e.bug, e.question): e.outcome for e in interview.of_kind("answer")}
    return tuple(
        replace(card, outcome=said.get((card.bug, card.question), "open"))
        for card in (*notes, *cards)
    )


def _note_question(program: Program, interview: Interview, bug: str) -> QuestionCard | None:
    """The notes at a bug that give a reason, to be judged by what is true of it."""
    notes = [e for e in _notes_in_time(interview) if e.is_about([bug]) and e.outcome == REASON]
    if not notes or program.patches[bug].decoy:
        return None
    quoted = " ".join(f'"{event.text}"' for event in notes)
    return QuestionCard(bug=bug, question=quoted, answer=program.patches[bug].why, note=True)


def _bug_card(program: Program, interview: Interview, bug: str, fixed: bool | None) -> BugCard:
    patch = program.patches[bug]
    found_gone = _times_gone(interview, bug)
    pointing = [event for event in _notes_in_time(interview) if event.is_about([bug])]
    named = [event for event in pointing if event.outcome != RIGHT]
    questions = follow_ups(program, interview)
    reason: Any = next((card.outcome for card in questions if card.note and card.bug == bug), "")
    known = min([math.inf, *found_gone[:1], *(event.seconds for event in named[:1])])
    helped = [e for e in interview.events if e.kind in HELP and e.seconds <= known]
    return BugCard(
        id=bug,
        category=patch.category,
        level=patch.level,
        fixed=fixed,
        named=bool(named) and reason != STAYED,
        reason=reason,
        fixed_at=found_gone[0] if found_gone else None,
        again_at=found_gone[-1] if len(found_gone) > 1 else None,
        named_at=named[0].seconds if named else None,
        notes=tuple(event.text for event in pointing),
        why=patch.why,
        find=patch.find,
        hints=sum(e.bug == bug for e in helped if e.kind == "hint"),
        triages=sum(bug in e.text.split() for e in helped if e.kind == "triage"),
        places=_places(program, interview, bug),
    )


def _places(program: Program, interview: Interview, bug: str) -> tuple[str, ...]:
    """`model.py:29`, or `missing below model.py:28` where a line was deleted."""
    edits = sorted(program.patches[bug].edits, key=lambda edit: (edit.file, edit.start))
    places = zip(bug_lines(program, interview.bugs)[bug], edits, strict=True)
    return tuple(
        f"{file}:{line + start}" if end > start else f"missing below {file}:{line + start - 1}"
        for (file, line, _), edit in places
        for start, end in changed_spans(edit.old.strip("\n"), edit.new.strip("\n"))
    )


def _times_gone(interview: Interview, bug: str) -> list[float]:
    """When a grade found a bug gone that had been there before, each time."""
    times, was_gone = [], False
    for event in interview.events:
        gone = read_details(event).get("bugs", {}).get(bug) if event.kind in GRADED else None
        if gone and not was_gone:
            times.append(event.seconds)
        was_gone = was_gone if gone is None else gone
    return times


def last_report(interview: Interview) -> ProgramReport:
    """What the last grade of an interview found, as far as its event keeps it."""
    graded = [e for e in interview.events if e.kind in (*GRADED, "end") and e.text]
    if not graded:
        return ProgramReport(outcome="failed")
    kept = read_details(graded[-1])
    return ProgramReport(
        outcome=cast("GradeOutcome", graded[-1].outcome),
        parts=tuple(
            PartResult(id=one, title=title, outcome="failed", message=message)
            for one, title, message in kept.get("wrong", ())
        ),
        bugs=tuple(BugResult(id=bug, fixed=fixed) for bug, fixed in kept.get("bugs", {}).items()),
    )

"""What is done while an interview is going on."""

from __future__ import annotations

from typing import Annotated

import typer

from attnlab.commands.base import Json, Memory, Timeout, emit, limits, progress, show_clock
from attnlab.commands.interview.formats import ask_round, show_status, submit_file
from attnlab.commands.rounds import (
    grade_interview,
    interview_folder,
    interview_program,
    interview_round,
    status_page,
)

Text = Annotated[str, typer.Argument(metavar="[TEXT]", help="A place and what is wrong there.")]
Drop = Annotated[
    str, typer.Option("--drop", metavar="N", help="Take note N back, as status numbers them.")
]


def status(ctx: typer.Context, json: Json = False) -> int:
    """Show the clock and what was done so far."""
    from attnlab.practice.interviews import require_current

    with progress() as store:
        interview = require_current(store)
    if interview.tasks:
        return show_status(ctx, interview, json)
    return emit(status_page(ctx, interview), json)


def write_note(ctx: typer.Context, text: Text = "", drop: Drop = "", json: Json = False) -> int:
    """Name a bug: its place, and why it matters.

    As in: attnlab interview note "train.py:40 labels are not shifted: it learns to copy". A place
    is a line (train.py:40, lines 40-43 of train.py) or the name of a class or function. Say of a
    place that only looks wrong: "train.py:52 looks odd, is right" or "... is harmless".
    """
    from attnlab.catalogue.programs import compose
    from attnlab.practice.interviews import keep, make_event, require_current
    from attnlab.practice.notes import read_note, refuse_unclear, source_line
    from attnlab.practice.scorecard import right_at
    from attnlab.records.practice import RIGHT
    from attnlab.render.interview import NotePage
    from attnlab.target.rounds import read_files

    if drop:
        return _drop_note(drop, text, json)
    with progress() as store:
        interview = require_current(store)
        program = interview_program(ctx, interview)
        given = compose(program, interview.bugs)
        files = read_files(program, interview_folder(interview)) or given
        refuse_unclear(text, program, interview.bugs, files)
        reading = read_note(text, program, interview.bugs, files)
        places = tuple(map(str, reading.places))
        known = {"bug": reading.bug, "outcome": reading.outcome, "question": ", ".join(places)}
        keep(store, make_event(interview, "note", text=text, **known))
    show_clock(interview)
    late = right_at(interview) is not None
    return emit(
        NotePage(
            text=text,
            places=places,
            lines=tuple(source_line(place, files) for place in reading.places),
            right=reading.outcome == RIGHT,
            file=program.edit[-1],
            late=late,
            outside=str(reading.outside or ""),
            reason=bool(reading.outcome),
        ),
        json,
    )


def _drop_note(drop: str, text: str, json: bool) -> int:
    from attnlab.errors import Refused
    from attnlab.practice.interviews import keep, make_event, require_current
    from attnlab.render.interview import NoteDroppedPage

    if text:
        raise Refused("--drop takes a note back and writes none", "leave the text out", "--drop")
    with progress() as store:
        interview = require_current(store)
        notes = {str(number): event for number, event in interview.notes.items()}
        if drop not in notes:
            hint = f"there is {', '.join(notes)}; attnlab interview status shows them"
            none = "no note was taken yet"
            raise Refused(f"--drop {drop}: there is no such note", hint if notes else none)
        keep(store, make_event(interview, "drop", question=drop))
    show_clock(interview)
    return emit(NoteDroppedPage(number=int(drop), text=notes[drop].text), json)


def ask(
    ctx: typer.Context,
    own: Annotated[str, typer.Argument(metavar="[N]", help="A measurement of an incident.")] = "",
    json: Json = False,
) -> int:
    """Show the next question of a good candidate, and its answer.

    It takes no question of your own: nobody is there to answer it. In a round of another format it
    makes measurement N, or gives a hint for a file.
    """
    from attnlab.errors import Refused
    from attnlab.practice.interviews import current, keep, make_event, require_current
    from attnlab.render.interview import AskPage

    with progress() as store:
        running = current(store)
    if running and running.tasks:
        return ask_round(ctx, running, own, json)
    if own:
        raise Refused(
            "nobody is there to answer a question of yours",
            "without a text ask shows the next question that a good candidate asks, and its answer",
        )
    with progress() as store:
        interview = require_current(store)
        program = interview_program(ctx, interview)
        asked = {event.question for event in interview.of_kind("ask")}
        left = [q for q in program.questions if q.question not in asked]
        if left:
            keep(store, make_event(interview, "ask", question=left[0].question))
    show_clock(interview)
    page = AskPage(question=left[0] if left else None, left=max(len(left) - 1, 0))
    return emit(page, json)


def submit(
    ctx: typer.Context, timeout: Timeout = "", memory: Memory = "", json: Json = False
) -> int:
    """Hand in: graded, and marked late after the time.

    The time that counts is that of the first grade or submit that passes; that of a grade once its
    files are handed in. A later submit that fails undoes it.
    """
    from dataclasses import replace

    from attnlab.practice.changes import grade_event
    from attnlab.practice.interviews import require_current
    from attnlab.practice.stages import keep_stage, open_stage
    from attnlab.render.interview import SubmitPage
    from attnlab.verdict import EXIT_CODES, grade_outcome

    with progress() as store:
        interview = require_current(store)
    if interview.tasks:
        return submit_file(ctx, interview, limits(timeout, memory), json)
    program, chosen = interview_program(ctx, interview), interview_round(ctx, interview)
    report = grade_interview(chosen, interview, timeout, memory)
    event = grade_event(program, interview, "submit", report, chosen.files)
    with progress() as store:
        store.add_event(event)
        keep_stage(store, program, open_stage(interview.events), report, interview)
    interview = replace(interview, events=(*interview.events, event))
    page = SubmitPage(program=program, interview=interview, report=report, seconds=event.seconds)
    return emit(page, json, EXIT_CODES[grade_outcome(report)])


def abandon(json: Json = False) -> int:
    """Drop it: no scorecard, nothing is revealed."""
    from attnlab.practice.interviews import make_event, require_current
    from attnlab.render.interview import AbandonPage

    with progress() as store:
        interview = require_current(store)
        store.add_event(make_event(interview, "abandon"))
    return emit(AbandonPage(interview=interview), json)

"""A debugging round against the clock, with notes, questions and a scorecard."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import (
    Force,
    Json,
    Memory,
    Timeout,
    catalogue,
    complete_slug,
    emit,
    limits,
    note,
    progress,
    run_program,
    show_clock,
    whole_number,
)
from attnlab.files import shown_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnlab.progress import Progress
    from attnlab.records.practice import Interview, QuestionCard, Scorecard
    from attnlab.records.program import Program, ProgramReport
    from attnlab.target.rounds import SelectedRound

PLACE = 69
LARGEST = 2**31 - 1
Round = Annotated[
    str,
    typer.Argument(metavar="[ROUND]", help="A program.", autocompletion=complete_slug),
]
Minutes = Annotated[
    str, typer.Option("--minutes", metavar="N", help="The time limit; the program's own if left.")
]
Untimed = Annotated[bool, typer.Option("--untimed", help="No time limit.")]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Draw the round with this seed.")]
Bugs = Annotated[str, typer.Option("--bugs", metavar="N", help="How many bugs to find.")]
Level = Annotated[str, typer.Option("--level", metavar="N", help="None harder than this, 1 to 5.")]
Text = Annotated[str, typer.Argument(metavar="TEXT", help="A place and what is wrong there.")]


def start(
    ctx: typer.Context,
    program: Round = "",
    minutes: Minutes = "",
    untimed: Untimed = False,
    seed: Seed = "",
    bugs: Bugs = "4",
    level: Level = "3",
    force: Force = False,
    json: Json = False,
) -> int:
    """Draw a round, write its folder, and start the clock."""
    import random

    from attnlab.catalogue.programs import read_program
    from attnlab.catalogue.rounds import write_round
    from attnlab.errors import Refused
    from attnlab.practice.interviews import begin, choose_program, draw_bugs, refuse_second
    from attnlab.render.interview import InterviewStartPage

    if untimed and minutes:
        raise Refused("--minutes and --untimed contradict each other", "give one of them")
    number = whole_number("--seed", seed, 0, LARGEST) if seed else random.randrange(10_000)
    count, hardest = whole_number("--bugs", bugs, 1, 8), whole_number("--level", level, 1, 5)
    limit = whole_number("--minutes", minutes, 1, 480) if minutes else 0
    found = catalogue(ctx)
    with progress() as store:
        refuse_second(store)
        slugs = [entry.slug for entry in found.programs]
        entry = found.find_program(program or choose_program(slugs, store, number))
        if entry is None:
            raise Refused(f"{program} is not a program", "attnlab list --kind program shows them")
        chosen = read_program(Path(entry.folder))
        ids = draw_bugs(chosen, number, count, hardest)
        copies = write_round(chosen, ids, replace=force)
        store.mark_started(chosen.slug)
        interview = begin(store, chosen, ids, 0 if untimed else limit or chosen.minutes, number)
    page = InterviewStartPage(
        program=chosen, interview=interview, bugs=count, kept=tuple(copies), decoys=len(ids) > count
    )
    return emit(page, json)


def status(ctx: typer.Context, json: Json = False) -> int:
    """Show the clock and what was done so far."""
    from attnlab.practice.interviews import require_current
    from attnlab.render.interview import InterviewStatusPage

    with progress() as store:
        interview = require_current(store)
    program = _program(ctx, interview)
    page = InterviewStatusPage(
        program=program,
        interview=interview,
        folder=shown_path(_folder(interview)),
        now=time.time(),
    )
    return emit(page, json)


def write_note(ctx: typer.Context, text: Text, json: Json = False) -> int:
    """Name a bug: its place, and why it matters.

    As in: attnlab interview note "train.py:40 labels are not shifted: it learns to copy".
    """
    from attnlab.practice.interviews import keep, make_event, require_current
    from attnlab.practice.notes import read_note
    from attnlab.render.interview import NotePage
    from attnlab.target.rounds import read_files

    with progress() as store:
        interview = require_current(store)
        program = _program(ctx, interview)
        reading = read_note(text, program, interview.bugs, read_files(program, _folder(interview)))
        outcome = "reason" if reading.reason else ""
        keep(store, make_event(interview, "note", bug=reading.bug, outcome=outcome, text=text))
    show_clock(interview)
    known = all(file in program.edit for file, _ in reading.places)
    page = NotePage(text=text, places=reading.places, known=known, files=program.edit)
    return emit(page, json)


def ask(ctx: typer.Context, json: Json = False) -> int:
    """Ask one more clarifying question; shows the answer."""
    from attnlab.practice.interviews import keep, make_event, require_current
    from attnlab.render.interview import AskPage

    with progress() as store:
        interview = require_current(store)
        program = _program(ctx, interview)
        asked = {event.question for event in interview.of_kind("ask")}
        left = [q for q in program.questions if q.question not in asked]
        if left:
            keep(store, make_event(interview, "ask", question=left[0].question))
    show_clock(interview)
    page = AskPage(program=program, question=left[0] if left else None, left=max(len(left) - 1, 0))
    return emit(page, json)


def submit(
    ctx: typer.Context, timeout: Timeout = "", memory: Memory = "", json: Json = False
) -> int:
    """Hand in: graded, and marked late after the time."""
    from attnlab.practice.interviews import make_event, report_text, require_current
    from attnlab.render.interview import SubmitPage
    from attnlab.verdict import EXIT_CODES

    with progress() as store:
        interview = require_current(store)
    program, chosen = _program(ctx, interview), _chosen(ctx, interview)
    report = _graded(chosen, interview, timeout, memory)
    with progress() as store:
        event = make_event(interview, "submit", outcome=report.outcome, text=report_text(report))
        score = report.parts_right / max(len(report.parts), 1)
        store.add_grade(program.slug, report.outcome, score, chosen.folder, event)
    page = SubmitPage(program=program, interview=interview, report=report, seconds=event.seconds)
    return emit(page, json, EXIT_CODES[report.outcome])


def end(ctx: typer.Context, timeout: Timeout = "", memory: Memory = "", json: Json = False) -> int:
    """End it: scorecard, bugs explained, follow-up questions."""
    from dataclasses import replace

    from attnlab.practice.interviews import make_event, report_text, require_current
    from attnlab.practice.scorecard import build_scorecard, last_report
    from attnlab.render.interview import ScorecardPage

    with progress() as store:
        interview = require_current(store)
    program = _program(ctx, interview)
    notes: tuple[str, ...] = ()
    files, report = None, last_report(interview)
    if _folder(interview).is_dir():
        chosen = _chosen(ctx, interview)
        files, report = chosen.files, _graded(chosen, interview, timeout, memory)
    else:
        folder = shown_path(_folder(interview))
        notes = (f"{folder}/ is gone: the last grade stands for what became of it",)
    with progress() as store:
        event = make_event(interview, "end", outcome=report.outcome, text=report_text(report))
        store.add_event(event)
        store.mark_revealed(program.slug)
        store.mark_solution_seen(program.slug)
    card = build_scorecard(program, interview, report, files, event.seconds)
    card = replace(card, notes=notes)
    code = emit(ScorecardPage(card=card), json)
    if not json:
        _ask_follow_ups(interview, card.follow_ups)
    return code


def questions(ctx: typer.Context, json: Json = False) -> int:
    """Go on with the follow-up questions."""
    from attnlab.errors import Refused
    from attnlab.practice.interviews import all_interviews
    from attnlab.practice.scorecard import follow_ups
    from attnlab.render.interview import QuestionsPage

    with progress() as store:
        ended = [i for i in all_interviews(store) if i.closing and i.closing.kind == "end"]
    if not ended:
        raise Refused("no interview has ended yet", "attnlab interview end ends the one going on")
    cards = follow_ups(_program(ctx, ended[-1]), ended[-1])
    if json or not any(card.outcome == "open" for card in cards):
        return emit(QuestionsPage(interview=ended[-1], cards=cards), json)
    _ask_follow_ups(ended[-1], cards)
    return 0


def abandon(json: Json = False) -> int:
    """Drop it: no scorecard, nothing is revealed."""
    from attnlab.practice.interviews import make_event, require_current
    from attnlab.render.interview import AbandonPage

    with progress() as store:
        interview = require_current(store)
        store.add_event(make_event(interview, "abandon"))
    return emit(AbandonPage(interview=interview), json)


def history(ctx: typer.Context, json: Json = False) -> int:
    """List past interviews, and what was found by category."""
    from attnlab.practice.interviews import all_interviews
    from attnlab.practice.scorecard import build_scorecard, last_report
    from attnlab.render.interview import HistoryPage

    with progress() as store:
        interviews = all_interviews(store)
    cards: list[Scorecard] = []
    for interview in interviews:
        entry = catalogue(ctx).find_program(interview.slug)
        if entry and interview.closing and interview.closing.kind == "end":
            program = _program(ctx, interview)
            if all(bug in program.patches for bug in interview.bugs):
                report = last_report(interview)
                seconds = interview.closing.seconds
                cards.append(build_scorecard(program, interview, report, None, seconds))
    page = HistoryPage(interviews=tuple(interviews), cards=tuple(cards), now=time.time())
    return emit(page, json)


COMMANDS: dict[str, Callable[..., int]] = {
    "start": start,
    "status": status,
    "note": write_note,
    "ask": ask,
    "submit": submit,
    "end": end,
    "questions": questions,
    "abandon": abandon,
    "history": history,
}


# ---------------------------------------------------------------- shared


def _program(ctx: typer.Context, interview: Interview) -> Program:
    from attnlab.catalogue.programs import read_program
    from attnlab.errors import Refused

    entry = catalogue(ctx).find_program(interview.slug)
    program = read_program(Path(entry.folder)) if entry else None
    known = program.patches if program else {}
    if program is None or not interview.bugs or not set(interview.bugs) <= known.keys():
        raise Refused(
            f"interview {interview.number} is about {interview.slug} of another version of attnlab",
            "attnlab interview abandon drops it",
        )
    return program


def _chosen(ctx: typer.Context, interview: Interview) -> SelectedRound:
    """The folder of an interview, whatever its mark says of its bugs."""
    from dataclasses import replace

    from attnlab.errors import Refused
    from attnlab.target.rounds import select_round

    folder = _folder(interview)
    if not folder.is_dir():
        raise Refused(
            f"{shown_path(folder)}/ is gone: the files of interview {interview.number} were there",
            f"attnlab reset {interview.name} writes them again; the clock and the notes are kept",
        )
    chosen = select_round(catalogue(ctx), interview.name, shown_path(folder))
    assert chosen is not None
    return replace(chosen, bugs=interview.bugs)


def _graded(
    chosen: SelectedRound, interview: Interview, timeout: str, memory: str
) -> ProgramReport:
    from attnlab.target.rounds import SECONDS, round_job

    note(f"grading {chosen.program.slug} {chosen.label}")
    show_clock(interview)
    bounds = limits(timeout, memory, usual=SECONDS)
    return run_program(round_job(chosen, ("grade", "goals", "bugs"), bounds))


def _folder(interview: Interview) -> Path:
    """Where its files lie: where it was started, else in this folder."""
    there, here = Path(interview.path), Path(interview.folder)
    return here if here.is_dir() and not there.is_dir() else there


def _ask_follow_ups(interview: Interview, cards: tuple[QuestionCard, ...]) -> None:
    """One question after the other at a terminal; each answer is noted at once."""
    from attnlab.render.interview import show_answer, show_question
    from attnlab.render.screen import stdout

    left = [card for card in cards if card.outcome == "open"]
    if not left:
        return
    if not sys.stdin.isatty():
        note("the follow-up questions need a terminal: attnlab interview questions")
        return
    try:
        for number, card in enumerate(left, 1):
            show_question(card, number, len(left), stdout())
            typer.prompt("answer aloud, then press Enter", default="", show_default=False)
            show_answer(card, stdout())
            said = typer.confirm("did you say that?", default=True)
            with progress() as store:
                _note_answer(store, interview, card, said)
    except (typer.Abort, KeyboardInterrupt, EOFError):
        note("the other questions wait: attnlab interview questions goes on with them")


def _note_answer(store: Progress, interview: Interview, card: QuestionCard, said: bool) -> None:
    from attnlab.practice.interviews import make_event
    from attnlab.records.practice import STAYED

    outcome = "said" if said else STAYED
    event = make_event(interview, "answer", bug=card.bug, question=card.question, outcome=outcome)
    store.add_event(event)

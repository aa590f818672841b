"""The end of an interview: the scorecard, then the follow-up questions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from attnlab.commands.asking import type_line, type_yes
from attnlab.commands.base import Json, Memory, Timeout, emit, note, progress
from attnlab.commands.output import Html, write_html
from attnlab.commands.rounds import (
    grade_interview,
    interview_folder,
    interview_program,
    interview_round,
    past_scorecards,
)
from attnlab.files import shown_folder

if TYPE_CHECKING:
    from attnlab.progress import Progress
    from attnlab.records.practice import Interview
    from attnlab.records.program import Files
    from attnlab.records.scorecard import QuestionCard, RoundCard


def end(
    ctx: typer.Context,
    timeout: Timeout = "",
    memory: Memory = "",
    html: Html = "",
    json: Json = False,
) -> int:
    """End it: scorecard, bugs explained, follow-up questions."""
    from dataclasses import replace

    from attnlab.commands.interview.formats import end_round
    from attnlab.commands.stats import all_stats
    from attnlab.practice.changes import grade_event
    from attnlab.practice.formats import past_formats
    from attnlab.practice.interviews import all_interviews, require_current
    from attnlab.practice.scorecard import build_scorecard, last_report
    from attnlab.practice.stages import keep_stage, open_stage
    from attnlab.practice.trend import build_trend
    from attnlab.render.scorecard import ScorecardPage
    from attnlab.render.screen import stdout

    with progress() as store:
        interview = require_current(store)
        before = all_interviews(store)[:-1]
    past: list[RoundCard] = [*past_scorecards(ctx, before), *past_formats(before)]
    if interview.tasks:
        return end_round(ctx, interview, past, json, html)
    program = interview_program(ctx, interview)
    notes: tuple[str, ...] = ()
    files: Files = {}
    report = last_report(interview)
    if interview_folder(interview).is_dir():
        chosen = interview_round(ctx, interview)
        files = chosen.files
        report = grade_interview(chosen, interview, timeout, memory)
    else:
        folder = shown_folder(interview_folder(interview))
        notes = (f"{folder} is gone: the last grade stands for what became of it",)
    with progress() as store:
        event = grade_event(program, interview, "end", report, files)
        keep_stage(store, program, open_stage(interview.events), report, interview)
        done = "passed" if interview.of_kind("stage") else report.outcome  # the bugs, by then
        store.add_grade(program.slug, done, report.score, interview.path, event)
        interview = all_interviews(store)[-1]
        store.mark_revealed(program.slug)
        store.mark_solution_seen(program.slug)
    card = build_scorecard(program, interview, report, event.seconds)
    card = replace(card, notes=notes)
    trend = build_trend([*past, card], all_stats(ctx))
    page = ScorecardPage(card=card, trend=trend, asks=not json and _can_ask(card.follow_ups))
    code = emit(page, json)
    if not json:
        interview = _ask_follow_ups(ctx, interview, card.follow_ups)
        page.show_next(stdout(), after_questions=True)
    if html:  # with what was ticked
        card = build_scorecard(program, interview, report, event.seconds)
        again = f"attnlab interview history {card.number} --html FILE writes it elsewhere"
        write_html(ScorecardPage(card=replace(card, notes=notes), trend=trend), html, again)
    return code


def questions(ctx: typer.Context, json: Json = False) -> int:
    """Go on with the follow-up questions."""
    from attnlab.errors import Refused
    from attnlab.practice.interviews import all_interviews
    from attnlab.practice.scorecard import follow_ups
    from attnlab.render.scorecard import QuestionsPage

    with progress() as store:
        ended = [i for i in all_interviews(store) if i.closing and i.closing.kind == "end"]
    ended = [i for i in ended if not i.tasks]
    if not ended:
        raise Refused("no interview has ended yet", "attnlab interview end ends the one going on")
    cards = follow_ups(interview_program(ctx, ended[-1]), ended[-1])
    if json or not any(card.outcome == "open" for card in cards):
        return emit(QuestionsPage(interview=ended[-1], cards=cards), json)
    _ask_follow_ups(ctx, ended[-1], cards)
    return 0


def _can_ask(cards: tuple[QuestionCard, ...]) -> bool:
    return sys.stdin.isatty() and any(card.outcome == "open" for card in cards)


def _ask_follow_ups(
    ctx: typer.Context, interview: Interview, cards: tuple[QuestionCard, ...]
) -> Interview:
    """One question after the other at a terminal, notes first; each answer is noted at once.
    Returns the interview with the answers."""
    from attnlab.practice.interviews import all_interviews
    from attnlab.practice.scorecard import follow_ups
    from attnlab.render.scorecard import show_rating, show_said
    from attnlab.render.screen import stdout

    left = [(number, card) for number, card in enumerate(cards, 1) if card.outcome == "open"]
    if not left:
        return interview
    if not sys.stdin.isatty():
        if any(card.note for _, card in left):
            note("the rating lacks your ticks: which notes say why, you say at a terminal")
        note("at a terminal attnlab interview questions goes through notes and follow-up questions")
        return interview
    try:
        for number, card in left:
            _ask_one(interview, card, number, len(cards))
    except (typer.Abort, KeyboardInterrupt):
        note("the other questions wait: attnlab interview questions goes on with them")
    with progress() as store:
        interview = next(i for i in all_interviews(store) if i.number == interview.number)
    show_said(follow_ups(interview_program(ctx, interview), interview), stdout())
    (scorecard,) = past_scorecards(ctx, [interview])
    show_rating(scorecard.rating, stdout())
    return interview


def _ask_one(interview: Interview, card: QuestionCard, number: int, count: int) -> None:
    """Show a question, or a note, then the answer; the person says whether it is the same."""
    from attnlab.render.scorecard import show_answer, show_question
    from attnlab.render.screen import stdout

    show_question(card, number, count, stdout())
    if not card.note:
        type_line("answer aloud, then press Enter")
    show_answer(card, stdout())
    asked = "does your note say this?" if card.note else "did you say that?"
    said = type_yes(asked)
    with progress() as store:
        _note_answer(store, interview, card, said)


def _note_answer(store: Progress, interview: Interview, card: QuestionCard, said: bool) -> None:
    from attnlab.practice.interviews import make_event
    from attnlab.records.practice import STAYED

    outcome = "said" if said else STAYED
    event = make_event(interview, "answer", bug=card.bug, question=card.question, outcome=outcome)
    store.add_event(event)

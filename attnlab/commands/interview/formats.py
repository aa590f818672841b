"""Rounds of other formats: one task after the other, each a question or a file to write."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, emit, note, progress, show_clock
from attnlab.commands.interview.tasks import (
    SKIP,
    ask_next,
    draw,
    keep,
    keep_measurement,
    keep_verdict,
    measured,
    require_open,
    seconds_taken,
    task_page,
)  # fmt: skip
from attnlab.commands.output import emit_also

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnlab.commands.interview.tasks import Asked
    from attnlab.questions.base import Runner
    from attnlab.records import Limits
    from attnlab.records.practice import Interview
    from attnlab.records.scorecard import RoundCard

Text = Annotated[
    str, typer.Argument(metavar="[ANSWER]", help="As in attnlab quiz; skip leaves the task out.")
]


def start_round(ctx: typer.Context, name: str, minutes: int, seed: int, json: bool) -> int:
    """Draw the tasks, prepare each, then start the clock."""
    from attnlab.commands.quiz import warm_runner
    from attnlab.practice.formats import TOPIC, draw_tasks, formats, with_bugs
    from attnlab.practice.interviews import begin, next_number, refuse_second
    from attnlab.render.format_round import RoundPage

    with progress() as store:
        refuse_second(store)
        known = {s for s, p in store.all_progress().items() if p.status == "solved"}
    tasks = draw_tasks(formats()[name], seed, catalogue(ctx).challenges, known)
    with warm_runner() as runner:
        note(f"preparing {len(tasks)} tasks; the clock does not run yet")
        tasks = with_bugs(tasks, lambda name: draw(ctx, name, runner)[0].category)
        for task in (task for task in tasks if not task.is_file):
            draw(ctx, task.id, runner)
        with progress() as store:
            folder = f"interview-{next_number(store)}"
            drawn = [(task.kind, task.id) for task in tasks]
            slug = f"{TOPIC}/{name}"
            interview = begin(store, slug, minutes, seed, folder=folder, tasks=drawn)
        shown, title = task_page(interview, ask_next(ctx, interview, runner)), formats()[name].title
        asks = sys.stdin.isatty()
        page = RoundPage(interview=interview, task=shown, now=time.time(), title=title, asks=asks)
        return _go_on(ctx, interview, runner, emit(page, json), json, shown=True)


def show_status(ctx: typer.Context, interview: Interview, json: bool) -> int:
    """The clock, what was done, and the task that is open."""
    from attnlab.commands.quiz import warm_runner
    from attnlab.practice.formats import task_cards
    from attnlab.render.format_round import RoundPage

    with warm_runner() as runner:
        task = task_page(interview, ask_next(ctx, interview, runner))
    cards = task_cards(interview)
    return emit(RoundPage(interview=interview, cards=cards, now=time.time(), task=task), json)


def answer(ctx: typer.Context, text: Text = "", json: Json = False) -> int:
    """Answer the question that is open, or all at a terminal.

    For rounds of review, incident, implement, explain and mixed. What is right is told at the end.
    """
    from attnlab.commands.quiz import warm_runner
    from attnlab.errors import Refused
    from attnlab.practice.interviews import require_current

    with progress() as store:
        interview = require_current(store)
    if not interview.tasks:
        hint = "attnlab interview note names a bug, submit hands in"
        raise Refused(f"{interview.name} is a program to debug: answer is for questions", hint)
    with warm_runner() as runner:
        if not text.strip() and sys.stdin.isatty() and not json:
            return _go_on(ctx, interview, runner, 0, json)
        asked = require_open(ask_next(ctx, interview, runner))
        if asked.file and text.strip().lower() != SKIP:
            hint = f"attnlab interview submit grades {asked.shown_file}; answer skip leaves it out"
            raise Refused(f"task {asked.card.number} asks for a file", hint)
        return _hand_in(ctx, interview, runner, asked, text, json)


def submit_file(ctx: typer.Context, interview: Interview, bounds: Limits, json: bool) -> int:
    """Grade the file of the task that is open; where it passes, the next task opens."""
    from attnlab.commands.quiz import warm_runner
    from attnlab.errors import Refused

    with warm_runner() as runner:
        asked = require_open(ask_next(ctx, interview, runner, bounds))
        if not asked.file:
            hint = "attnlab interview answer ANSWER answers it"
            raise Refused(f"task {asked.card.number} is a question, and asks for no file", hint)
        return _hand_in(ctx, interview, runner, asked, str(asked.file), json)


def ask_round(ctx: typer.Context, interview: Interview, typed: str, json: bool) -> int:
    """A measurement of an incident, what is true of what was said aloud, or a hint for a file."""
    from attnlab.commands.quiz import warm_runner
    from attnlab.errors import Refused
    from attnlab.questions.base import find_measurement
    from attnlab.render.format_round import RoundHintPage
    from attnlab.render.quiz import MeasurementPage

    with warm_runner() as runner:
        asked = require_open(ask_next(ctx, interview, runner))
    show_clock(interview)
    if asked.file:
        hints, taken = catalogue(ctx).find(asked.card.task.id).hints, asked.card.hints
        if new := taken < len(hints):
            keep(interview, "hint", question=str(asked.card.number))
        return emit(RoundHintPage(hints=hints[: taken + 1], of=len(hints), new=new), json)
    if not asked.part.question.measurements:
        raise Refused(
            f"task {asked.card.number} has nothing to measure and no hint",
            "attnlab interview answer ANSWER answers it",
        )
    if not typed:
        raise Refused("ask measures what you name", "as in attnlab interview ask 1")
    before = measured(interview, asked.part)
    found = find_measurement(asked.part, typed, len(before))
    if found.name not in before:
        keep_measurement(interview, asked.part, found)
    return emit(MeasurementPage(measurement=found, answer="attnlab interview answer ANSWER"), json)


def end_round(
    ctx: typer.Context, interview: Interview, past: Sequence[RoundCard], json: bool, html: str
) -> int:
    """End it: what each task was, what was answered, and what is right."""
    from attnlab.commands.stats import all_stats
    from attnlab.practice.formats import format_card
    from attnlab.practice.trend import build_trend
    from attnlab.render.format_round import FormatCardPage

    card = format_card(keep(interview, "end"), time.time())
    trend = build_trend([*past, card], all_stats(ctx))
    return emit_also(FormatCardPage(card=card, trend=trend), json, 0, html)


def _hand_in(
    ctx: typer.Context, interview: Interview, runner: Runner, asked: Asked, typed: str, json: bool
) -> int:
    """Judge an answer and keep it; then the next task."""
    from attnlab.questions.base import judge
    from attnlab.render.format_round import RoundPage

    show_clock(interview)
    seconds, count = seconds_taken(interview), len(measured(interview, asked.part))
    verdict = judge(asked.parts, asked.number, typed, seconds, count)
    interview, verdict = keep_verdict(interview, asked, verdict)
    page = RoundPage(
        interview=interview,
        task=task_page(interview, ask_next(ctx, interview, runner)),
        now=time.time(),
        number=asked.card.number,
        verdict=verdict,
        file=bool(asked.file),
        asks=sys.stdin.isatty(),
    )
    wrong = bool(asked.file) and bool(verdict.next)
    return _go_on(ctx, interview, runner, emit(page, json, int(wrong)), json, shown=True)


def _go_on(
    ctx: typer.Context,
    interview: Interview,
    runner: Runner,
    code: int,
    json: bool,
    shown: bool = False,
) -> int:
    """At a terminal, ask until the round is done, a file is to be written, or the person leaves.
    `shown`: the task that is open is on the screen."""
    from attnlab.commands.asking import ask_part
    from attnlab.render.screen import stdout

    if json or not sys.stdin.isatty():
        return code
    try:
        while asked := ask_next(ctx, interview, runner):
            task = task_page(interview, asked)
            if task and not shown:
                stdout().gap()
                show_clock(interview)
                task.show(stdout(), again=asked.number > 1)
            shown = False
            if asked.file:
                stdout().do_next(task.next if task else "")
                return code
            kept = partial(keep_measurement, interview, asked.part)
            count = len(measured(interview, asked.part))
            verdict = ask_part(
                asked.parts, asked.number, count, kept, f"{SKIP} leaves it out, ? explains"
            )
            interview, _ = keep_verdict(interview, asked, verdict)
    except (typer.Abort, KeyboardInterrupt):
        note("the clock runs on: attnlab interview answer goes on, end shows the scorecard")
        return code
    note("every task is done: attnlab interview end shows the scorecard")
    return code

"""Past interviews."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from attnlab.commands.base import Json, catalogue, emit, progress
from attnlab.commands.interview.shared import interview_program

if TYPE_CHECKING:
    from attnlab.records.practice import Scorecard


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
            program = interview_program(ctx, interview)
            if all(bug in program.patches for bug in interview.bugs):
                report = last_report(interview)
                seconds = interview.closing.seconds
                cards.append(build_scorecard(program, interview, report, None, seconds))
    page = HistoryPage(interviews=tuple(interviews), cards=tuple(cards), now=time.time())
    return emit(page, json)

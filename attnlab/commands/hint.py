from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from attnlab.commands.base import (
    Json,
    NameOrFile,
    catalogue,
    emit,
    progress,
    running_interview,
    select_file,
)

if TYPE_CHECKING:
    from attnlab.target.rounds import SelectedRound

PLACE = 50


def command(ctx: typer.Context, what: NameOrFile, json: Json = False) -> int:
    """Show one more hint each time.

    The first is about the symptom, the second about the place, the third about the line.
    """
    from attnlab.render.challenge import HintPage
    from attnlab.target.rounds import select_round

    if chosen := select_round(catalogue(ctx), what):
        return _hint_round(chosen, json)
    challenge = select_file(ctx, what).challenge
    with progress() as kept:
        standing = kept.challenge_progress(challenge.slug)
        more = standing.hints < len(challenge.hints)
        taken = kept.add_hint(challenge.slug) if more else len(challenge.hints)
    solved = standing.status == "solved"
    return emit(HintPage(challenge=challenge, taken=taken, more=more, solved=solved), json)


def _hint_round(chosen: SelectedRound, json: bool) -> int:
    """The hints of a round's bugs, one bug after the other."""
    from attnlab.practice.interviews import make_event
    from attnlab.render.round import RoundHintPage

    program = chosen.program
    bugs = [program.patches[bug] for bug in chosen.bugs if not program.patches[bug].decoy]
    hints = [
        (f"bug {place} of {len(bugs)}, hint {number} of {len(bug.hints)}", text)
        for place, bug in enumerate(bugs, 1)
        for number, text in enumerate(bug.hints, 1)
    ]
    with progress() as kept:
        interview = running_interview(kept, program.slug)
        if interview:  # it has a count of its own
            taken = len(interview.of_kind("hint"))
        else:
            taken = kept.challenge_progress(program.slug).hints
        more = taken < len(hints)
        if more:
            kept.add_hint(program.slug, make_event(interview, "hint") if interview else None)
            taken += 1
    return emit(RoundHintPage(program=program, shown=tuple(hints[:taken]), more=more), json)

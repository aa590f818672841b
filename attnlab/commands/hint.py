from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from attnlab.commands.base import (
    Json,
    NameOrFile,
    emit,
    join_interview,
    looks_like_path,
    progress,
    select_file,
)

if TYPE_CHECKING:
    from attnlab.target.rounds import SelectedRound

PLACE = 50


def command(ctx: typer.Context, what: NameOrFile = "", json: Json = False) -> int:
    """Show one more hint each time.

    The first says what to look at, and each is nearer to the bug than the one before; none quotes
    the fix. In a round they are about one bug after the other: first those whose lines you have
    not changed.
    """
    from attnlab.commands.rounds import find_round, usual_name
    from attnlab.render.challenge import HintPage

    what = what or usual_name(ctx)
    if chosen := find_round(ctx, what):
        return _hint_round(chosen, json)
    challenge = select_file(ctx, what).challenge
    with progress() as store:
        standing = store.challenge_progress(challenge.slug)
        more = standing.hints < len(challenge.hints)
        taken = store.add_hint(challenge.slug) if more else len(challenge.hints)
    solved = standing.status == "solved"
    typed = what if looks_like_path(what) else ""
    page = HintPage(challenge=challenge, taken=taken, more=more, solved=solved, typed=typed)
    return emit(page, json)


def _hint_round(chosen: SelectedRound, json: bool) -> int:
    """The hints of a round's bugs, one bug after the other; or of the stage that is open."""
    from attnlab.practice.changes import differ_from_passed
    from attnlab.practice.hints import hint_event, hint_texts, hints_before, next_hint
    from attnlab.practice.rating import cost_of_hints
    from attnlab.practice.stages import events_of_round, has_passed
    from attnlab.render.round import RoundHintPage

    program = chosen.program
    with progress() as store:
        chosen, interview = join_interview(store, chosen)
        stage = program.stage(chosen.stage)
        bugs = [bug for bug in chosen.bugs if not program.patches[bug].decoy]
        before = hints_before(store, program, [stage.id] if stage else bugs, interview)
        new = next_hint(program, bugs, stage, chosen.files, before)
        if new:
            store.add_hint(program.slug, hint_event(program, new, interview))
        events = events_of_round(store, program)
        passed = bool(interview) and has_passed(events, chosen.stage)
        passed = passed and not differ_from_passed(program, events, chosen.files)
    taken = (*before, new) if new else before
    shown = hint_texts(program, bugs, stage, taken)
    cost = ""
    if interview and not stage:
        cost = cost_of_hints(len(taken), len(bugs), len(interview.of_kind("triage")))
    page = RoundHintPage(
        program=program,
        shown=shown,
        more=new is not None,
        cost=cost,
        passed=passed,
        name=chosen.shown_name,
    )
    return emit(page, json)

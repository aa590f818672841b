from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, NameOrFile, emit, progress, refuse_answers, select_file

if TYPE_CHECKING:
    from attnlab.records import ChallengeProgress

PLACE = 60
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.")]


def command(ctx: typer.Context, what: NameOrFile, yes: Yes = False, json: Json = False) -> int:
    """Show the solution; asks first unless you solved it."""
    from attnlab.catalogue.texts import notes_text, shipped_text, solution_text
    from attnlab.commands.explain import head_of, show_how_it_fails
    from attnlab.commands.rounds import find_round
    from attnlab.practice.stages import events_of_round, has_passed
    from attnlab.render.challenge import SolutionPage
    from attnlab.render.round import RoundSolutionPage
    from attnlab.render.stage import StageSolutionPage

    chosen = find_round(ctx, what)
    if chosen:
        with progress() as store:
            refuse_answers(store, chosen.program.slug, "the solution")
        standing = _may_see(chosen.program.slug, chosen.program.name, yes)
        stage = chosen.program.stage(chosen.stage)
        with progress() as store:
            passed = has_passed(events_of_round(store, chosen.program), chosen.stage)
        after = (
            StageSolutionPage(program=chosen.program, stage=stage, solved=passed) if stage else None
        )
        if after and not chosen.bugs:
            return emit(after, json)
        solved = standing.status == "solved"
        page = RoundSolutionPage(
            program=chosen.program, bugs=chosen.bugs, solved=solved, stage=after
        )
        return emit(page, json)
    file = select_file(ctx, what)
    challenge, head = file.challenge, head_of(file)
    standing = _may_see(challenge.slug, challenge.name, yes)
    shown = SolutionPage(
        challenge=challenge,
        shipped=head + shipped_text(challenge),
        solution=head + solution_text(challenge),
        notes=notes_text(challenge),
        evidence=show_how_it_fails(challenge, head),
        solved=standing.status == "solved",
    )
    return emit(shown, json)


def _may_see(slug: str, name: str, yes: bool) -> ChallengeProgress:
    """Ask where nothing says that the solution may be seen; note that it was."""
    with progress() as store:
        standing = store.challenge_progress(slug)
        if not (yes or standing.status == "solved" or standing.solution_seen):
            _confirm(name)
        store.mark_solution_seen(slug)
    return standing


def _confirm(name: str) -> None:
    """Raises unless a person at a terminal says yes."""
    from attnlab.errors import Refused

    hint = f"attnlab hint {name} gives another hint; --yes shows the solution anyway"
    if not sys.stdin.isatty():
        raise Refused(f"{name} is not solved yet, and there is no terminal to ask", hint)
    if not typer.confirm(f"{name} is not solved yet. Show the solution?", err=True):
        raise Refused("the solution was not shown", hint)

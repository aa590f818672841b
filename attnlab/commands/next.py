from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import typer

from attnlab.commands.base import Json, catalogue, progress

if TYPE_CHECKING:
    from attnlab.catalogue.program_entries import ProgramEntry
    from attnlab.records import Challenge
    from attnlab.render.memory import PlanPage

PLACE = 25


class Following(NamedTuple):
    """The one thing to do next, and what it is about, if that is a challenge or program."""

    command: str
    unit: Challenge | ProgramEntry | None = None
    begun: bool = False  # its file is here


def command(ctx: typer.Context, json: Json = False) -> int:
    """Go on: start the next unsolved challenge here.

    What is under way in this folder comes first, or an interview that is going on; then a plan that
    is open, a round that was just solved, and what the page of the challenge named that was passed
    last.
    """
    from attnlab.commands.list import overview
    from attnlab.commands.start import command as start

    following = find_following(ctx)
    if following.unit and not following.begun:
        return start(ctx, following.unit.name, json=json)
    return overview(ctx, json)


def find_following(ctx: typer.Context, slug: str = "", plan: PlanPage | None = None) -> Following:
    """What every page names that says what is next: bare attnlab, list, plan, stats, a grade that
    passed. `slug`: of a challenge that is done with; `plan`: the one that is shown."""
    from attnlab.commands.list import list_page
    from attnlab.commands.plan import step_of_today
    from attnlab.commands.rounds import next_after_round
    from attnlab.practice.interviews import current

    with progress() as store:
        going_on = current(store) is not None
    listing, after_round = list_page(ctx), next_after_round(ctx)
    mine = [unit for unit in listing.under_way if unit.slug != slug]
    if going_on:
        return Following(after_round)
    if mine:
        return Following(f"attnlab watch {mine[0].name}", mine[0], begun=True)
    if step := next(iter(plan.days[0].steps), None) if plan else step_of_today(ctx):
        units = {unit.slug: unit for unit, _ in listing.rows}
        return Following(step.command, units.get(step.slug))
    if after_round:
        return Following(after_round)
    unit = find_next(ctx, slug)
    return Following(f"attnlab run {unit.name}" if unit else "", unit)


def find_next(ctx: typer.Context, slug: str = "") -> Challenge | ProgramEntry | None:
    """What comes after a challenge, by default the one that was graded last: what it names, the
    next of its track, else the first that is unsolved; None where all are solved."""
    from attnlab.commands.list import list_page
    from attnlab.render.list import next_unsolved

    with progress() as store:
        passed = [e.base for e in store.events() if e.kind == "grade" and e.outcome == "passed"]
    slug = slug or next(reversed(passed), "")
    rows = list_page(ctx).rows
    unsolved = tuple(r for r in rows if r[1].status != "solved" and r[0].slug != slug)
    after = next((c for c in catalogue(ctx).challenges if c.slug == slug), None)
    if after and slug in passed and (named := [c for c, _ in unsolved if c.name == after.then]):
        return named[0]
    in_track = _next_of_track(ctx, after) if after else None
    return in_track or next_unsolved(unsolved)


def _next_of_track(ctx: typer.Context, after: Challenge) -> Challenge | None:
    """The next challenge of its track that is not solved, easier ones first."""
    from attnlab.catalogue.tracks import tracks_of

    with progress() as store:
        solved = {slug for slug, p in store.all_progress().items() if p.status == "solved"}
    for track in tracks_of(after):
        units = sorted(filter(track.holds, catalogue(ctx).challenges), key=track.order)
        at = [unit.slug for unit in units].index(after.slug)
        left = [u for u in (*units[at + 1 :], *units[:at]) if u.slug not in solved]
        if left:
            return left[0]
    return None

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from attnlab.commands.base import Json, catalogue, progress

if TYPE_CHECKING:
    from attnlab.catalogue.program_entries import ProgramEntry
    from attnlab.records import Challenge

PLACE = 25


def command(ctx: typer.Context, json: Json = False) -> int:
    """Go on: start the next unsolved challenge here.

    What is under way in this folder comes first, or a round that is going on or was just solved;
    then what the page of the challenge named that was passed last.
    """
    from attnlab.commands.list import list_page, overview
    from attnlab.commands.rounds import next_after_round
    from attnlab.commands.start import command as start

    listing = list_page(ctx)
    following = find_next(ctx)
    if listing.under_way or following is None or next_after_round(ctx):
        return overview(ctx, json)
    return start(ctx, following.name, json=json)


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
    in_track = next_of_track(ctx, after) if after else None
    return in_track[0] if in_track else next_unsolved(unsolved)


def next_of_track(ctx: typer.Context, after: Challenge) -> tuple[Challenge, str] | None:
    """The next challenge of its track that is not solved, easier ones first, and the track."""
    from attnlab.catalogue.tracks import tracks_of

    with progress() as store:
        standings = store.all_progress()
    solved = {slug for slug, standing in standings.items() if standing.status == "solved"}
    for track in tracks_of(after):
        units = sorted(filter(track.holds, catalogue(ctx).challenges), key=track.order)
        at = [unit.slug for unit in units].index(after.slug)
        left = [u for u in (*units[at + 1 :], *units[:at]) if u.slug not in solved]
        if left:
            return left[0], track.id
    return None

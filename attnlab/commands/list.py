from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, emit, progress, started_here, warn

if TYPE_CHECKING:
    from attnlab.catalogue.program_entries import ProgramEntry
    from attnlab.records import Challenge
    from attnlab.render.list import ListPage

PLACE = 10
TrackName = Annotated[
    str, typer.Argument(metavar="[TRACK]", help="Show this track whole, as in masks.")
]
All = Annotated[bool, typer.Option("--all", help="Show every challenge and program.")]
Kind = Annotated[
    str,
    typer.Option("--kind", metavar="KIND", help="Only debug, implement, port, cheaper, program."),
]
Topic = Annotated[str, typer.Option("--topic", metavar="TOPIC", help="Only this topic.")]
Level = Annotated[str, typer.Option("--level", metavar="N[-M]", help="Only these levels, 1 to 5.")]
Tag = Annotated[
    str, typer.Option("--tag", metavar="TAG", help="Only mistakes of this kind, as in mask.")
]
Status = Annotated[
    str, typer.Option("--status", metavar="STATUS", help="Only new, started, tried or solved.")
]
Source = Annotated[
    str, typer.Option("--source", metavar="TEXT", help="Only with this in where it was seen.")
]


def command(
    ctx: typer.Context,
    track: TrackName = "",
    everything: All = False,
    kind: Kind = "",
    topic: Topic = "",
    level: Level = "",
    tag: Tag = "",
    status: Status = "",
    source: Source = "",
    json: Json = False,
) -> int:
    """List the challenges and programs, and how far you are.

    Without anything after it, the tracks are shown, with what is next in each.
    """
    from attnlab.catalogue.selection import Wanted
    from attnlab.commands.next import find_following
    from attnlab.render.list import TracksPage

    listing = list_page(ctx)
    wanted = Wanted(
        track=track, kind=kind, topic=topic, level=level, tag=tag, status=status, source=source
    )
    if everything or any((track, kind, topic, level, tag, status, source)):
        return emit(replace(listing, rows=wanted.select(listing.rows), track=track), json)
    return emit(TracksPage(listing=listing, next=find_following(ctx).command), json)


def overview(ctx: typer.Context, json: bool) -> int:
    """What `attnlab` alone shows: how far the user is, and what is next."""
    from attnlab.commands.next import find_following
    from attnlab.commands.plan import open_plan
    from attnlab.practice.interviews import current, describe_clock
    from attnlab.render.list import OverviewPage

    with progress() as store:
        interview = current(store)
    going_on = describe_clock(interview, with_name=True) if interview else ""
    following = find_following(ctx).command
    page = OverviewPage(
        listing=list_page(ctx), interview=going_on, next=following, plan=open_plan()
    )
    return emit(page, json)


def list_page(ctx: typer.Context) -> ListPage:
    """The challenges and programs, and how far the user is with each."""
    from attnlab.catalogue.round_mark import MARK
    from attnlab.records import ChallengeProgress
    from attnlab.render.list import ListPage

    found = catalogue(ctx)
    for error in found.broken:
        where = f"{error.where}: " if error.where else ""
        warn(f"left out: {where}{error.message}" + (f" ({error.hint})" if error.hint else ""))
    with progress() as store:
        standings = store.all_progress()
    units: list[Challenge | ProgramEntry] = [*found.challenges, *found.programs]
    rows = tuple((u, standings.get(u.slug, ChallengeProgress())) for u in units)
    folders = frozenset(p.slug for p in found.programs if (Path(p.name) / MARK).is_file())
    return ListPage(rows=rows, here=started_here(found.challenges) | folders)

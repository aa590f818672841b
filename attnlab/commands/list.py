from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, emit, progress, started_here, warn

if TYPE_CHECKING:
    from attnlab.catalogue.programs import ProgramEntry
    from attnlab.records import Challenge
    from attnlab.render.list import ListPage

PLACE = 10
KINDS = ("debug", "implement", "port", "cheaper", "program")
Kind = Annotated[
    str,
    typer.Option(
        "--kind", metavar="KIND", help="Only these: debug, implement, port, cheaper or program."
    ),
]


def command(ctx: typer.Context, kind: Kind = "", json: Json = False) -> int:
    """List the challenges and programs, and how far you are."""
    from attnlab.errors import Refused
    from attnlab.suggest import did_you_mean, either

    if kind and kind not in KINDS:
        hint = did_you_mean(kind, KINDS) or f"Write {either(KINDS)}."
        raise Refused(f"--kind {kind}: there is no such kind", hint, "--kind")
    return emit(list_page(ctx, kind), json)


def overview(ctx: typer.Context, json: bool) -> int:
    """What `attnlab` alone shows: how far the user is, and what is next."""
    from attnlab.practice.interviews import current, describe_clock
    from attnlab.render.list import OverviewPage

    with progress() as store:
        interview = current(store)
    going_on = describe_clock(interview, with_name=True) if interview else ""
    return emit(OverviewPage(listing=list_page(ctx), interview=going_on), json)


def list_page(ctx: typer.Context, kind: str = "") -> ListPage:
    """The challenges and programs of a kind, and how far the user is with each."""
    from attnlab.catalogue.rounds import MARK
    from attnlab.records import ChallengeProgress
    from attnlab.render.list import ListPage

    found = catalogue(ctx)
    for error in found.broken:
        where = f"{error.where}: " if error.where else ""
        warn(f"left out: {where}{error.message}" + (f" ({error.hint})" if error.hint else ""))
    with progress() as store:
        standings = store.all_progress()
    units: list[Challenge | ProgramEntry] = [*found.challenges, *found.programs]
    units = [u for u in units if kind in ("", u.kind)]
    rows = tuple((u, standings.get(u.slug, ChallengeProgress())) for u in units)
    folders = frozenset(p.slug for p in found.programs if (Path(p.name) / MARK).is_file())
    return ListPage(rows=rows, here=started_here(found.challenges) | folders)

from __future__ import annotations

from pathlib import Path

import typer

from attnlab.commands.base import (
    Json,
    Name,
    catalogue,
    emit,
    progress,
    running_interview,
    select_file,
)

PLACE = 15


def command(ctx: typer.Context, name: Name, json: Json = False) -> int:
    """Say what a challenge or program asks, before you start it."""
    from attnlab.catalogue.programs import read_program
    from attnlab.catalogue.round_mark import MARK
    from attnlab.catalogue.tracks import tracks_of
    from attnlab.render.description import DescriptionPage

    found = catalogue(ctx)
    entry = found.find_program(name)
    unit = entry or found.find(name)
    asked = read_program(Path(entry.folder)) if entry else found.find(name)
    with progress() as store:
        standing = store.challenge_progress(unit.slug)
        going_on = bool(entry and running_interview(store, unit.slug))
    page = DescriptionPage(
        unit=unit,
        symptom=asked.symptom,
        task=asked.task,
        tracks=tuple(track.id for track in tracks_of(unit)),
        standing=standing,
        going_on=going_on,
        here=(Path(entry.name) / MARK).is_file() if entry else select_file(ctx, name).yours,
    )
    return emit(page, json)

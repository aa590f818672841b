from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, emit, progress

if TYPE_CHECKING:
    from attnlab.records.practice import Answer, KeptProgress, Stats

PLACE = 72
LARGEST = 64 << 20  # bytes of a file that is imported
Export = Annotated[
    str, typer.Option("--export", metavar="FILE", help="Write all that you did as JSON.")
]
Import = Annotated[
    str, typer.Option("--import", metavar="FILE", help="Add what --export wrote elsewhere.")
]


def command(ctx: typer.Context, to: Export = "", source: Import = "", json: Json = False) -> int:
    """Show how you do, by kind of bug and of question."""
    from attnlab.commands.next import find_following
    from attnlab.errors import Refused
    from attnlab.render.memory import KeptPage, StatsPage

    if to and source:
        raise Refused("--export and --import cannot be given together", "give one", "--import")
    if to:
        return emit(KeptPage(file=to, count=_export(to), imported=False), json)
    if source:
        kept = _read(source)
        with progress() as store:
            count = store.merge(kept)
        return emit(KeptPage(file=source, count=count, imported=True), json)
    return emit(StatsPage(stats=all_stats(ctx), next=find_following(ctx).command), json)


def answers(ctx: typer.Context) -> list[Answer]:
    """All that was answered so far."""
    from attnlab.commands.rounds import past_scorecards
    from attnlab.practice.answers import all_answers
    from attnlab.practice.interviews import all_interviews

    with progress() as store:
        events, interviews = store.events(), all_interviews(store)
    categories = {c.slug: c.category or c.topic for c in catalogue(ctx).challenges}
    return all_answers(events, categories, past_scorecards(ctx, interviews))


def all_stats(ctx: typer.Context) -> Stats:
    """The figures of all that was answered so far."""
    from attnlab.practice.answers import build_stats

    return build_stats(answers(ctx))


def _export(to: str) -> int:
    """Write everything to a new file; returns how many things that are."""
    from attnlab.errors import Refused
    from attnlab.files import write_whole
    from attnlab.records import to_json

    if Path(to).exists():
        raise Refused(f"{to} already exists and was not changed", "name a new file", "--export")
    with progress() as store:
        kept = store.export()
    try:
        write_whole(Path(to), to_json(kept) + "\n")
    except OSError as error:
        raise Refused(f"{to} cannot be written: {error.strerror}", "name another", to) from None
    return len(kept.events) + len(kept.grades)


def _read(source: str) -> KeptProgress:
    from attnlab.errors import Unreadable
    from attnlab.files import read_bytes
    from attnlab.records import FORMAT, from_json
    from attnlab.records.practice import KeptProgress

    data = read_bytes(Path(source), source, LARGEST)
    try:
        kept = from_json(KeptProgress, data)
    except ValueError as error:
        says = f"{source} is not what attnlab stats --export writes: {str(error)[:100]}"
        raise Unreadable(says, "nothing was added", source) from None
    if kept.format != FORMAT:
        raise Unreadable(
            f"{source} has format {kept.format}; this attnlab reads {FORMAT}", "", source
        )
    return kept

from pathlib import Path
from typing import Annotated

import typer

from attnlab.commands.base import (
    Force,
    Json,
    Name,
    catalogue,
    emit,
    looks_like_path,
    parse_seed,
    progress,
    refuse_answers,
    select_file,
)

PLACE = 20
Bugs = Annotated[
    str, typer.Option("--bugs", metavar="ID,ID", help="Of a program: the bugs to put in.")
]
Seed = Annotated[
    str, typer.Option("--seed", metavar="N", help="Of a program: draw four bugs with this seed.")
]


def command(
    ctx: typer.Context,
    slug: Name,
    bugs: Bugs = "",
    seed: Seed = "",
    force: Force = False,
    json: Json = False,
) -> int:
    """Copy a challenge's file, or a program's folder, to here."""
    from attnlab.catalogue.starter import write_starter
    from attnlab.errors import Refused
    from attnlab.records.practice import Event
    from attnlab.render.challenge import StartPage

    if looks_like_path(slug):
        name = select_file(ctx, slug).challenge.name
        hint = f"attnlab reset {slug} puts it back as it was"
        raise Refused(f"{slug} is a file of {name} already", hint, slug)
    found = catalogue(ctx)
    if entry := found.find_program(slug):
        return _start_round(entry.folder, bugs, seed, force, json)
    challenge = found.find(slug)
    if bugs or seed:
        flag = "--bugs" if bugs else "--seed"
        hint = "attnlab list --kind program shows what takes it"
        raise Refused(f"{flag}: {slug} is one file with one bug", hint, flag)
    file, kept = write_starter(challenge, replace=force)
    with progress() as store:
        store.mark_started(challenge.slug)
        store.add_event(Event(kind="start", base=challenge.slug))
    return emit(StartPage(challenge=challenge, file=file, kept=kept), json)


def _start_round(folder: str, bugs: str, seed: str, force: bool, json: bool) -> int:
    from attnlab.catalogue.programs import read_program
    from attnlab.catalogue.rounds import choose_bugs, write_round
    from attnlab.records.practice import Event
    from attnlab.render.round import RoundStartPage

    program = read_program(Path(folder))
    chosen = choose_bugs(program, bugs, parse_seed(seed))
    with progress() as store:
        refuse_answers(store, program.slug, "another round of the same program")
        kept = write_round(program, chosen, replace=force)
        store.mark_started(program.slug)
        store.add_event(Event(kind="start", base=program.slug))
    page = RoundStartPage(
        program=program, folder=f"./{program.name}", kept=tuple(kept), round=chosen
    )
    return emit(page, json)

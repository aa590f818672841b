from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.commands.base import Force, Json, Slug, catalogue, emit, progress

PLACE = 20
SEEDS = 2**63 - 1
Bugs = Annotated[
    str, typer.Option("--bugs", metavar="ID,ID", help="Of a program: the bugs to put in.")
]
Seed = Annotated[
    str, typer.Option("--seed", metavar="N", help="Of a program: draw four bugs with this seed.")
]


def command(
    ctx: typer.Context,
    slug: Slug,
    bugs: Bugs = "",
    seed: Seed = "",
    force: Force = False,
    json: Json = False,
) -> int:
    """Copy a challenge's file, or a program's folder, to this folder for you to fix."""
    from attnlab.catalogue.starter import write_starter
    from attnlab.errors import Refused
    from attnlab.render.challenge import StartPage

    found = catalogue(ctx)
    if entry := found.find_program(slug):
        return _start_round(entry.folder, bugs, seed, force, json)
    challenge = found.find(slug)
    if bugs or seed:
        flag = "--bugs" if bugs else "--seed"
        hint = "attnlab list --kind program shows what takes it"
        raise Refused(f"{flag}: {slug} is one file with one bug", hint, flag)
    file, kept = write_starter(challenge, replace=force)
    with progress() as done:
        done.mark_started(challenge.slug)
    return emit(StartPage(challenge=challenge, file=file, kept=kept), json)


def _start_round(folder: str, bugs: str, seed: str, force: bool, json: bool) -> int:
    from attnlab.catalogue.programs import read_program
    from attnlab.catalogue.rounds import choose_bugs, write_round
    from attnlab.errors import Refused
    from attnlab.render.round import RoundStartPage

    if seed and not (seed.isdecimal() and int(seed) <= SEEDS):
        raise Refused(f"--seed {seed}: a whole number from 0 on is needed", "as in 7", "--seed")
    program = read_program(Path(folder))
    chosen = choose_bugs(program, bugs, int(seed) if seed else None)
    kept = write_round(program, chosen, replace=force)
    with progress() as done:
        done.mark_started(program.slug)
    count = sum(not program.patches[bug].decoy for bug in chosen)
    page = RoundStartPage(program=program, folder=f"./{program.name}", kept=tuple(kept), bugs=count)
    return emit(page, json)

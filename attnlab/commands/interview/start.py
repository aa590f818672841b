"""Begin an interview."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab.commands.base import (
    Force,
    Json,
    catalogue,
    complete_slug,
    emit,
    progress,
    whole_number,
)

LARGEST = 2**31 - 1
Round = Annotated[
    str,
    typer.Argument(metavar="[ROUND]", help="A program.", autocompletion=complete_slug),
]
Minutes = Annotated[
    str, typer.Option("--minutes", metavar="N", help="The time limit; the program's own if left.")
]
Untimed = Annotated[bool, typer.Option("--untimed", help="No time limit.")]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Draw the round with this seed.")]
Bugs = Annotated[str, typer.Option("--bugs", metavar="N", help="How many bugs to find.")]
Level = Annotated[str, typer.Option("--level", metavar="N", help="None harder than this, 1 to 5.")]


def start(
    ctx: typer.Context,
    program: Round = "",
    minutes: Minutes = "",
    untimed: Untimed = False,
    seed: Seed = "",
    bugs: Bugs = "4",
    level: Level = "3",
    force: Force = False,
    json: Json = False,
) -> int:
    """Draw a round, write its folder, and start the clock."""
    import random

    from attnlab.catalogue.programs import read_program
    from attnlab.catalogue.rounds import write_round
    from attnlab.errors import Refused
    from attnlab.practice.interviews import begin, choose_program, draw_bugs, refuse_second
    from attnlab.render.interview import InterviewStartPage

    if untimed and minutes:
        raise Refused("--minutes and --untimed contradict each other", "give one of them")
    number = whole_number("--seed", seed, 0, LARGEST) if seed else random.randrange(10_000)
    count, hardest = whole_number("--bugs", bugs, 1, 8), whole_number("--level", level, 1, 5)
    limit = whole_number("--minutes", minutes, 1, 480) if minutes else 0
    found = catalogue(ctx)
    with progress() as store:
        refuse_second(store)
        slugs = [entry.slug for entry in found.programs]
        entry = found.find_program(program or choose_program(slugs, store, number))
        if entry is None:
            raise Refused(f"{program} is not a program", "attnlab list --kind program shows them")
        chosen = read_program(Path(entry.folder))
        ids = draw_bugs(chosen, number, count, hardest)
        copies = write_round(chosen, ids, replace=force)
        store.mark_started(chosen.slug)
        interview = begin(store, chosen, ids, 0 if untimed else limit or chosen.minutes, number)
    page = InterviewStartPage(
        program=chosen, interview=interview, bugs=count, kept=tuple(copies), decoys=len(ids) > count
    )
    return emit(page, json)

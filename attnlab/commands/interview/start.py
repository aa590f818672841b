"""Begin an interview."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from attnlab.catalogue.program_entries import ProgramEntry

LARGEST = 2**31 - 1
Round = Annotated[
    str,
    typer.Argument(
        metavar="[ROUND]",
        help="A program, or review, incident, implement, explain, mixed.",
        autocompletion=complete_slug,
    ),
]
Minutes = Annotated[
    str, typer.Option("--minutes", metavar="N", help="The time limit; the program's own if left.")
]
Untimed = Annotated[bool, typer.Option("--untimed", help="No time limit.")]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Draw the round with this seed.")]
Bugs = Annotated[str, typer.Option("--bugs", metavar="N", help="How many bugs to find.")]
Level = Annotated[str, typer.Option("--level", metavar="N", help="None harder than this, 1 to 5.")]
About = Annotated[
    str,
    typer.Option(
        "--about",
        metavar="KIND",
        help="Take half of the bugs, if it has so many, from this kind, such as mask.",
    ),
]


def start(
    ctx: typer.Context,
    program: Round = "",
    minutes: Minutes = "",
    untimed: Untimed = False,
    seed: Seed = "",
    bugs: Bugs = "4",
    level: Level = "3",
    about: About = "",
    force: Force = False,
    json: Json = False,
) -> int:
    """Draw a round, write its folder, and start the clock."""
    import random

    from attnlab.catalogue.programs import draw_bugs, read_program
    from attnlab.catalogue.rounds import write_round
    from attnlab.commands.interview.formats import start_round
    from attnlab.errors import Refused
    from attnlab.practice.formats import formats
    from attnlab.practice.interviews import begin, choose_program, refuse_second, seen_bugs
    from attnlab.render.interview import InterviewStartPage

    if untimed and minutes:
        raise Refused("--minutes and --untimed contradict each other", "give one of them")
    number = whole_number("--seed", seed, 0, LARGEST) if seed else random.randrange(10_000)
    count, hardest = whole_number("--bugs", bugs, 1, 8), whole_number("--level", level, 1, 5)
    limit = whole_number("--minutes", minutes, 1, 480) if minutes else 0
    if program in formats():
        given = {"--bugs": bugs != "4", "--level": level != "3", "--about": about, "--force": force}
        for flag in (flag for flag, value in given.items() if value):
            raise Refused(f"{flag} is for a program with bugs, not for {program}", "", flag)
        limit = 0 if untimed else limit or formats()[program].minutes
        return start_round(ctx, program, limit, number, json)
    entries = {entry.slug: entry for entry in _entries(ctx, program, about, count, hardest)}
    with progress() as store:
        refuse_second(store)
        chosen = read_program(Path(entries[choose_program(list(entries), store, number)].folder))
        seen = set() if seed else seen_bugs(store, chosen.slug)  # a seed repeats a round
        ids = draw_bugs(chosen, number, count, hardest, about, seen)
        copies = write_round(chosen, ids, replace=force)
        store.mark_started(chosen.slug)
        limit = 0 if untimed else limit or chosen.minutes
        interview = begin(store, chosen.slug, limit, number, folder=chosen.name, bugs=ids)
    page = InterviewStartPage(
        program=chosen, interview=interview, bugs=count, kept=tuple(copies), decoys=len(ids) > count
    )
    return emit(page, json)


def _entries(
    ctx: typer.Context, name: str, about: str, count: int, level: int
) -> list[ProgramEntry]:
    """Of the programs that may be drawn: one by its name, or those that are not above the level; of
    them those with most bugs of a kind that is asked for."""
    from attnlab.catalogue.programs import count_about, read_program
    from attnlab.errors import Refused
    from attnlab.practice.formats import formats
    from attnlab.suggest import did_you_mean

    found = catalogue(ctx)
    if name and found.find_program(name) is None:
        near = did_you_mean(name, [*formats(), *(entry.name for entry in found.programs)])
        all_of_them = f"attnlab list --kind program shows all; formats are {', '.join(formats())}"
        hint = f"{near} " * bool(near) + all_of_them
        raise Refused(f"{name} is not a program, nor a format", hint)
    entries = [e for e in ([found.find_program(name)] if name else found.programs) if e]
    easy = [entry for entry in entries if name or entry.level <= level] or entries
    if not about:
        return easy
    programs = {entry.slug: read_program(Path(entry.folder)) for entry in entries}
    kinds = {slug: {bug.category for bug in program.bugs} for slug, program in programs.items()}
    if about not in (known := sorted(set[str]().union(*kinds.values()))):
        hint = did_you_mean(about, known) or f"there are {', '.join(known)}"
        whose = f"{name} has no" if name else "there are no"
        raise Refused(f"--about {about}: {whose} such bugs", hint, "--about")
    having = [entry for entry in entries if about in kinds[entry.slug]]
    having = [entry for entry in having if entry in easy] or having
    counts = [count_about(programs[entry.slug], about, count, level) for entry in having]
    return [entry for entry, each in zip(having, counts, strict=True) if each == max(counts)]

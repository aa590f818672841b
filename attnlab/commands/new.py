from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, emit, note, parse_seed, whole_number

if TYPE_CHECKING:
    from attnlab.records import Challenge

PLACE = 22
BASES = 6  # that are tried for a bug of the wanted level
Topic = Annotated[
    str, typer.Option("--topic", metavar="TOPIC", help="attention, position, cache or programs.")
]
Level = Annotated[str, typer.Option("--level", metavar="N", help="How hard, 1 to 4.")]
Bugs = Annotated[str, typer.Option("--bugs", metavar="N", help="How many bugs, 1 to 3.")]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Draw this one again.")]


def command(
    ctx: typer.Context,
    topic: Topic = "",
    level: Level = "",
    bugs: Bugs = "1",
    seed: Seed = "",
    json: Json = False,
) -> int:
    """Draw a fresh challenge: a bug that nobody has seen.

    The bug is vetted first: the grader rejects it, and an experiment shows it. Then it is a
    challenge like any other. With --topic programs it is a round of a program.
    """
    from attnlab.doctor import isolated_worker
    from attnlab.errors import Refused
    from attnlab.mutation_testing.drawing import draw_from_base
    from attnlab.render.drawn import DrawnPage
    from attnlab.target.drawn import drawn_seed

    number = drawn_seed(parse_seed(seed))
    count = whole_number("--bugs", bugs, 1, 3, "as in 2")
    if level:
        whole_number("--level", level, 1, 4, "as in 2")
    if topic == "programs":
        return _start_program(ctx, number, level, json)
    bases = bases_of(catalogue(ctx).challenges, topic)
    dice = random.Random(number)
    dice.shuffle(bases)
    with isolated_worker(note) as worker:
        for base in bases[:BASES]:
            note(f"looking for a bug in {base.base.partition('/')[2]}")
            if slug := draw_from_base(base, number, worker, level, count):
                drawn = catalogue(ctx, anew=True).find(slug)
                return emit(DrawnPage(challenge=drawn, seed=number), json)
    hint = "try another --seed, --level or --topic"
    raise Refused("no bug of this level was found", hint, "--level" if level else "--seed")


def bases_of(challenges: Iterable[Challenge], topic: str) -> list[Challenge]:
    """One challenge of each base of a topic, with no promises but those of its base."""
    from attnlab.catalogue.bases import SABOTAGED
    from attnlab.catalogue.load import DRAWN
    from attnlab.errors import Refused
    from attnlab.suggest import either

    found: dict[str, Challenge] = {}
    for each in challenges:
        if each.base and each.topic not in (DRAWN, SABOTAGED):
            least = found.setdefault(each.base, each)
            if len(each.contract.promises) < len(least.contract.promises):
                found[each.base] = each
    topics = sorted({challenge.topic for challenge in found.values()})
    if topic and topic not in topics:
        hint = f"Write {either([*topics, 'programs'])}."
        raise Refused(f"--topic {topic}: there is no such topic", hint, "--topic")
    return [c for slug, c in sorted(found.items()) if topic in ("", c.topic)]


def _start_program(ctx: typer.Context, seed: int, level: str, json: bool) -> int:
    """A round of a program with drawn bugs."""
    from attnlab.commands.start import command as start

    programs = [p for p in catalogue(ctx).programs if level in ("", str(p.level))]
    chosen = random.Random(seed).choice(programs or list(catalogue(ctx).programs))
    return start(ctx, chosen.name, seed=str(seed), json=json)

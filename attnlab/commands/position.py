from typing import Annotated

import typer

from attnlab.commands.base import Json, emit, note

PLACE = 110


def complete_kind(incomplete: str) -> list[tuple[str, str]]:
    from attnlab.records.position import KINDS

    return [pair for pair in KINDS.items() if pair[0].startswith(incomplete)]


Name = Annotated[
    str,
    typer.Argument(
        metavar="KIND",
        help="sinusoidal, learned, rope, alibi, t5, xl, xpos or 2d.",
        autocompletion=complete_kind,
    ),
]
Dim = Annotated[str, typer.Option("--dim", metavar="D", help="Columns, all heads together: 64.")]
Length = Annotated[str, typer.Option("--length", metavar="S", help="Positions: 64.")]
Heads = Annotated[str, typer.Option("--heads", metavar="H", help="Attention heads: 8.")]
Base = Annotated[str, typer.Option("--base", metavar="B", help="Of the frequencies: 10000.")]


def command(
    kind: Name,
    dim: Dim = "",
    length: Length = "",
    heads: Heads = "",
    base: Base = "",
    json: Json = False,
) -> int:
    """Show what positions look like: a map, frequencies, distances.

    Also its statistics, and whether a shift is a rotation.
    """
    from attnlab.errors import Broken
    from attnlab.records.position import position_job
    from attnlab.render.position import PositionPage
    from attnlab.worker.client import Worker

    job = position_job(kind, dim=dim, length=length, heads=heads, base=base)
    note(f"computing {kind} positions, which loads torch")
    with Worker() as worker:
        report = worker.position(job)
    if report.outcome == "error":
        raise Broken(report.message, "this is a fault of attnlab; please report it")
    return emit(PositionPage(job=job, report=report), json)

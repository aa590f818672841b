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
        help="sinusoidal, learned, rope, alibi, t5, xl, xpos, 2d, fourier or number.",
        autocompletion=complete_kind,
    ),
]
Dim = Annotated[str, typer.Option("--dim", metavar="D", help="Columns, all heads together: 64.")]
Length = Annotated[str, typer.Option("--length", metavar="S", help="Positions: 64.")]
Heads = Annotated[str, typer.Option("--heads", metavar="H", help="Attention heads: 8.")]
Base = Annotated[str, typer.Option("--base", metavar="B", help="Of the frequencies: 10000.")]
Layout = Annotated[
    str, typer.Option("--layout", help="Of the pairs: interleaved, concatenated, half for rope.")
]
Scaling = Annotated[
    str,
    typer.Option(
        "--scaling",
        metavar="NAME:FACTOR",
        help="Of rope: linear, ntk, dynamic, yarn or llama3, as in yarn:4.",
    ),
]
Trained = Annotated[
    str, typer.Option("--trained", metavar="N", help="Positions seen in training: half of them.")
]
Other = Annotated[
    str,
    typer.Option(
        "--vs", metavar="OTHER", help='Compare with: alibi, base=500000, "rope scaling=yarn:4".'
    ),
]


def command(
    kind: Name,
    dim: Dim = "",
    length: Length = "",
    heads: Heads = "",
    base: Base = "",
    layout: Layout = "",
    scaling: Scaling = "",
    trained: Trained = "",
    vs: Other = "",
    json: Json = False,
) -> int:
    """Show what positions look like: a map, frequencies, distances.

    Also its statistics, and whether a shift is a rotation.
    """
    from attnlab.errors import Broken
    from attnlab.records.position import position_job, position_jobs
    from attnlab.render.position import PositionPage
    from attnlab.render.position_pair import PositionPairPage
    from attnlab.worker.client import Worker

    sizes = {"dim": dim, "length": length, "heads": heads, "base": base}
    sizes |= {"layout": layout, "scaling": scaling, "trained": trained}
    jobs = position_jobs(kind, vs, **sizes) if vs else (position_job(kind, **sizes),)
    kinds = dict.fromkeys(job.kind for job in jobs)
    note(f"computing {' and '.join(kinds)} positions, which loads torch")
    with Worker() as worker:
        pages = [PositionPage(job=job, report=worker.position(job)) for job in jobs]
    for page in pages:
        if page.report.outcome == "error":
            raise Broken(page.report.message, "this is a fault of attnlab; please report it")
    if vs:
        return emit(PositionPairPage(one=pages[0], other=pages[1]), json)
    return emit(pages[0], json)

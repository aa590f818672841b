"""`attnlab batch merge`: one run of several parts."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from attnlab.commands.base import Json
from attnlab.commands.batch.show import Output, show_run

Into = Annotated[str, typer.Argument(metavar="RUN", help="The file to write.")]
Parts = Annotated[list[str], typer.Argument(metavar="PART...", help="Runs of --shard.")]


Partial = Annotated[bool, typer.Option("--partial", help="Merge though parts are missing.")]


def merge(
    ctx: typer.Context, run: Into, parts: Parts, partial: Partial = False, json: Json = False
) -> int:
    """Put runs of parts of a class into one, with one verdict for each submission."""
    from attnlab.batch.merge import merge_runs
    from attnlab.batch.run import BatchStore
    from attnlab.errors import Refused

    new = not Path(run).exists()
    with closing(BatchStore(Path(run))) as store:
        try:
            merge_runs(store, [Path(part) for part in parts], partial)
        except Refused:
            store.close()
            if new:
                Path(run).unlink(missing_ok=True)
            raise
        return show_run(ctx, store, Output(json, csv=False, html="", form=""))

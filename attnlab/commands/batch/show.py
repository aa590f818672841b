"""`attnlab batch show`: what a run says, also one that goes on or was ended."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from attnlab.commands.base import Json, catalogue
from attnlab.commands.output import Format, Html, emit_also

if TYPE_CHECKING:
    from attnlab.batch.run import BatchStore
    from attnlab.records.batch import BatchSummary

Run = Annotated[str, typer.Argument(metavar="RUN", help="The file of a run.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print a row for each submission instead.")]


class Output(NamedTuple):
    """Where the page goes, as the flags say."""

    json: bool
    csv: bool
    html: str
    form: str


def show(
    ctx: typer.Context,
    run: Run,
    csv: Csv = False,
    html: Html = "",
    form: Format = "",
    json: Json = False,
) -> int:
    """Show who fails what, the first failures, and who says the same as others."""
    from attnlab.batch.run import BatchStore

    with closing(BatchStore(Path(run), writing=False)) as store:
        return show_run(ctx, store, Output(json, csv, html, form))


def show_run(ctx: typer.Context, store: BatchStore, output: Output) -> int:
    """Print what a run says; returns the exit code."""
    from attnlab.batch.grader import find_grader
    from attnlab.batch.summary import summarize
    from attnlab.errors import AttnlabError, Broken
    from attnlab.render.batch import BatchPage
    from attnlab.render.json import write_text

    run = store.require_run()
    try:
        known = find_grader(catalogue(ctx), run.challenge).known()
    except AttnlabError:  # it is gone or of another version: all else can be shown
        known = {}
    summary = summarize(store, run, known)
    page = BatchPage(summary=summary, next=_advice(summary))
    passed = summary.outcomes.get("passed", 0) == run.total
    code = Broken.exit_code if "error" in summary.outcomes else 0 if passed else 1
    if output.csv and not output.json:
        write_text(page.table())
        return code
    return emit_also(page, output.json, code, output.html, output.form)


def _advice(summary: BatchSummary) -> str:
    if summary.graded and set(summary.outcomes) == {"unreadable"}:
        return f"none can be read: was {summary.run.challenge} what they were asked? attnlab list"
    show = f"attnlab batch show {shlex.quote(summary.file)}"
    return f"{show} --csv has a row for each; --html FILE makes a page to send"

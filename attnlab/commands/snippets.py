from __future__ import annotations

import sys
from typing import Annotated

import typer

from attnlab.commands.base import Json, Timeout, emit, limits, run_job, whole_number
from attnlab.commands.target_flags import OWN_TIME, NamedTarget, takes_target

PLACE = 108
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Only this one, as nan; setup stands before it."),
]
Row = Annotated[
    str, typer.Option("--row", metavar="N", help="Stop the debugger at this row of trace --json.")
]
Line = Annotated[
    str, typer.Option("--line", metavar="N", help="Stop the debugger at the rows of this line.")
]


@takes_target
def command(
    named: NamedTarget,
    only: Only = None,
    row: Row = "",
    line: Line = "",
    timeout: Timeout = "",
    json: Json = False,
) -> int:
    """Write Python to paste: asserts of shapes, hooks, tests.

    Also one clipped step of training and a stop in the debugger. All of it is one script:
    attnlab snippets net.py > look.py; then python look.py runs all, and pytest look.py the tests.
    """
    from dataclasses import replace

    from attnlab.errors import Refused
    from attnlab.records import TraceOptions
    from attnlab.render.snippets import SnippetsPage
    from attnlab.suggest import did_you_mean
    from attnlab.target.options import parse_row
    from attnlab.target.snippets import row_at, with_run, write_snippets

    target, at = named.name, parse_row(row)
    at_line = whole_number("--line", line, 1, sys.maxsize) if line else None
    job = named.job(limits(timeout or OWN_TIME, ""), TraceOptions(cost=True))
    if job.contract is None:
        raise Refused(f"{target}: a demo makes its own inputs", "name its class, as file.py:Net")
    named.announce("looking at", job)
    report = run_job(replace(job, stages=("trace", "check")))
    if report.trace is None or report.outcome != "ok":
        raise Refused(
            f"{target}: {report.message or report.outcome}",
            replace(named.typed, verb="trace").command() + " looks closer",
        )
    if at_line is not None:
        at = row_at(report.trace, at_line)
    found = write_snippets(job, report, at)
    names = [s.id for s in found]
    for name in only or ():
        if name not in names:
            hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
            raise Refused(f'--only: there is no "{name}" for {target}', hint, "--only")
    chosen = tuple(s for s in found if not only or s.id in ("setup", *only))
    page = SnippetsPage(target=target, built=report.target, snippets=with_run(chosen))
    return emit(page, json)

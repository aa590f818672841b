"""`attnlab batch grade`: a verdict for each submission, kept as soon as it is known."""

from __future__ import annotations

import os
import sys
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import (
    SEEDS,
    Json,
    Memory,
    Timeout,
    catalogue,
    complete_slug,
    limits,
    note,
    whole_number,
)
from attnlab.commands.batch.show import Csv, Output, show_run
from attnlab.commands.output import Format, Html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from attnlab.batch.grader import Grader, Task
    from attnlab.batch.run import BatchStore, Progress
    from attnlab.records.batch import BatchProgress, BatchRun, Graded, Submission

MOST_SLOTS = 256
OTHERS = 6  # files that are named, though not graded
Where = Annotated[
    str,
    typer.Argument(
        metavar="FOLDER|MANIFEST.csv",
        help="A file or folder for each person, or a table with the columns name and file.",
    ),
]
OfChallenge = Annotated[
    str,
    typer.Option(
        "--challenge",
        metavar="NAME",
        help="What they were asked: a challenge, or a program.",
        autocompletion=complete_slug,
    ),
]
RunFile = Annotated[
    str, typer.Option("--run", metavar="FILE", help="Where verdicts are kept; FOLDER.run else.")
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with a run that was ended, or grade what is new.")
]
Slots = Annotated[
    str, typer.Option("--slots", metavar="N", help="Grade so many at a time, not one a core.")
]
Seed = Annotated[
    str, typer.Option("--seed", metavar="N", help="Of what all are tried with; drawn else.")
]
Scheduler = Annotated[
    str,
    typer.Option(
        "--scheduler", metavar="tcp://...", help="Grade on the workers of this Dask scheduler."
    ),
]
Shard = Annotated[
    str, typer.Option("--shard", metavar="I/N", help="Grade one part of N; attnlab batch merge.")
]


def grade(
    ctx: typer.Context,
    where: Where,
    challenge: OfChallenge = "",
    run: RunFile = "",
    resume: Resume = False,
    timeout: Timeout = "",
    memory: Memory = "",
    slots: Slots = "",
    seed: Seed = "",
    scheduler: Scheduler = "",
    shard: Shard = "",
    csv: Csv = False,
    html: Html = "",
    form: Format = "",
    json: Json = False,
) -> int:
    """Grade a folder of submissions, or those of a manifest; parts of rounds are named.

    All are graded with the same seed. A verdict is kept as soon as it is known: --resume goes on
    with a run that was ended, however that happened.
    """
    from attnlab.batch.grader import find_grader
    from attnlab.batch.merge import parse_shard
    from attnlab.batch.run import BatchStore, draw_seed, plan_run
    from attnlab.batch.submissions import find_others, find_submissions
    from attnlab.doctor import count_cores
    from attnlab.errors import Refused

    if scheduler and os.environ.get("ATTNLAB_REQUIRE_ISOLATION", "none") != "none":
        raise Refused("--require-isolation cannot be asked of other machines", "leave it out")
    if not challenge:
        raise Refused("--challenge is missing: what were they asked?", "attnlab list shows names")
    grader = find_grader(catalogue(ctx), challenge)
    bounds = limits(timeout, memory, usual=grader.usual_seconds)
    size = whole_number("--slots", slots, 1, MOST_SLOTS) if slots else count_cores()
    given = whole_number("--seed", seed, 0, SEEDS, "as in 7") if seed else None
    submissions = find_submissions(where, grader.file, bool(grader.files()))
    if others := find_others(where, bool(grader.files())):
        more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
        note(f"not taken for submissions: {', '.join(others[:OTHERS])}{more}")
    drawn, stem = draw_seed(submissions), Path(where).resolve().stem
    if shard:
        number, count = parse_shard(shard)
        submissions, stem = submissions[number - 1 :: count], f"{stem}-{number}-of-{count}"
    file = Path(run or f"{stem}.run")
    with closing(BatchStore(file)) as store:
        before = store.run()
        drawn = before.seed if before else drawn
        planned = plan_run(grader, bounds, drawn if given is None else given, len(submissions))
        store.begin(replace(planned, parts=(f"{number}/{count}",) if shard else ()), resume)
        _grade_left(grader, store, submissions, size, scheduler)
        return show_run(ctx, store, Output(json, csv, html, form))


def _grade_left(
    grader: Grader, store: BatchStore, submissions: list[Submission], size: int, scheduler: str
) -> None:
    """Grade what has no verdict, and show how far that is."""
    from attnlab.batch.run import Progress, find_ungraded
    from attnlab.files import shown_path
    from attnlab.render.screen import plural

    left = find_ungraded(grader, submissions, store)
    progress = Progress(total=len(submissions))
    for one in store.graded():
        progress.count(one)
    if not left:
        return
    shown = shown_path(store.path)
    known = f" ({len(submissions) - len(left)} were graded before)" if progress.outcomes else ""
    count = plural(len(left), "submission")
    note(f"grading {count} to {grader.slug}{known}; verdicts are kept in {shown}")
    run = store.require_run()
    tasks = (grader.task(submission, run) for submission in left)
    try:
        with (
            _on_cluster(grader, tasks, run, scheduler, len(left))
            if scheduler
            else _here(grader, tasks, progress, min(size, len(left))) as verdicts,
            _watch(progress) as tell,
        ):
            progress.start()
            for graded in verdicts:
                store.add(graded)
                progress.add(graded)
                tell(progress.now(graded))
    except KeyboardInterrupt:
        done = sum(progress.outcomes.values())
        note(f"{done} of {progress.total} verdicts are kept; --resume goes on with the rest")
        raise


@contextmanager
def _here(
    grader: Grader, tasks: Iterable[Task], progress: Progress, slots: int
) -> Iterator[Iterator[Graded]]:
    """Verdicts of workers on this machine."""
    from attnlab.batch.run import grade_all
    from attnlab.doctor import isolated_pool

    with isolated_pool(note, slots) as pool:
        yield grade_all(grader, pool, tasks, progress, slots)


@contextmanager
def _on_cluster(
    grader: Grader, tasks: Iterable[Task], run: BatchRun, scheduler: str, count: int
) -> Iterator[Iterator[Graded]]:
    """Verdicts of the nodes of a cluster."""
    from attnlab.batch.cluster import connect, grade_on

    with connect(scheduler, run) as client:
        yield grade_on(client, grader, run, tasks, count)


@contextmanager
def _watch(progress: Progress) -> Iterator[Callable[[BatchProgress], None]]:
    """What is told of each verdict: a table that is drawn again and again, lines in a pipe."""
    from attnlab.render.batch import LiveTable, progress_line
    from attnlab.render.screen import stderr

    screen = stderr()
    if not sys.stderr.isatty() or screen.no_color:
        yield lambda now: note(progress_line(now))
        return
    with LiveTable(progress.now, screen):
        yield lambda _: None

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, Timeout, emit, limits, note, run_job
from attnlab.commands.target_flags import OWN_TIME, NamedTarget, takes_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnlab.records import Report
    from attnlab.records.ablation import Ablation
    from attnlab.records.trace import Op
    from attnlab.render.walk import WalkPage
    from attnlab.sizes import Sizes

PLACE = 101
Quiz = Annotated[
    bool, typer.Option("--quiz", help="Ask for the shape that a line gives before it is shown.")
]


@takes_target
def command(
    named: NamedTarget, quiz: Quiz = False, timeout: Timeout = "", json: Json = False
) -> int:
    """Walk through any module, line by line and axis by axis.

    The lines come in the order in which they ran, with views, copies and costs. For a challenge it
    tells what the lines do, not whether they are right.
    """
    from dataclasses import replace

    from attnlab.errors import Refused
    from attnlab.questions.walk import walk
    from attnlab.records import TraceOptions
    from attnlab.render.walk import WalkPage
    from attnlab.verdict import hide_findings

    if quiz and (json or not sys.stdin.isatty()):
        raise Refused("--quiz asks at a terminal", "leave it out to see the walk", "--quiz")
    job = named.job(limits(timeout or OWN_TIME, ""), TraceOptions(cost=True, memory=True))
    job = replace(job, stages=("trace", "ablation"))
    named.announce("walking through", job)
    report = run_job(job)
    trace = report.trace
    if trace and named.chosen:  # what is wrong with a challenge is for the person to find
        trace = hide_findings(trace)
    sizes = {**(job.contract.sizes if job.contract else {}), **(trace.sizes if trace else {})}
    page = WalkPage(
        target=report.target or named.name,
        outcome="crashed" if trace and trace.crash else report.outcome,
        sizes=sizes,
        steps=walk(trace, _parts(report, bool(named.chosen))) if trace else (),
        crash=trace.crash if trace else None,
        message=report.message,
        notes=trace.notes if trace else (),
    )
    code = 0 if page.outcome == "ok" else 1
    if quiz and page.steps:
        _ask_each(page, trace.ops if trace else ())
        return code
    return emit(page, json, code)


def _parts(report: Report, puzzle: bool) -> list[Ablation]:
    """What was switched off line by line; of a puzzle without what names its cause."""
    parts = report.ablation.parts if report.ablation else ()
    return [p for p in parts if p.kind != "head" and not (puzzle and p.is_finding)]


def _ask_each(page: WalkPage, ops: Sequence[Op]) -> None:
    """Each line by itself: its shape is asked for where it is certain, then it is explained."""
    from attnlab.questions.readable import value_row
    from attnlab.render.screen import stdout
    from attnlab.render.walk import show_end, show_head, show_source, show_step

    screen, points, asked = stdout(), 0.0, 0
    show_head(page, screen)
    with suppress(typer.Abort, KeyboardInterrupt):
        for step in page.steps:
            screen.gap()
            show_source(step, screen)
            mine = [op for op in ops if (op.file, op.line) == (step.file, step.line)]
            if row := value_row(step.source, mine):
                points += _ask(row, page.sizes)
                asked += 1
            show_step(step, screen)
        show_end(page, screen)
    screen.gap()
    said = f"{points:g} of {asked} shapes right" if asked else "no shape was answered"
    screen.say((said, "title"))


def _ask(row: Op, sizes: Sizes) -> float:
    """What the answer is worth."""
    from attnlab.commands.asking import tell, type_line
    from attnlab.errors import AttnlabError
    from attnlab.questions.kinds.shapes import EXPECTED, Run, judge_axes
    from attnlab.records.quiz import POINTS
    from attnlab.render.quiz import show_judged
    from attnlab.render.screen import stdout

    while True:
        typed = type_line("which axes has the value of the line?")
        try:
            if typed == "?":
                note(f"type {EXPECTED}; the sizes stand at the top")
                continue
            found = judge_axes(typed, row, [Run(row.shape, sizes)])
        except AttnlabError as error:
            tell(error)
            continue
        show_judged(found.mark, found.message, " ".join(row.axes), stdout())
        return POINTS[found.mark]

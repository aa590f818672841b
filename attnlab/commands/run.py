from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import (
    Json,
    Memory,
    NameOrFile,
    Selection,
    Timeout,
    announce,
    challenge_job_for,
    emit,
    join_interview,
    limits,
    note,
    note_reveal,
    progress,
    run_job,
    run_program,
    select_file,
)

if TYPE_CHECKING:
    from attnlab.records import Verdict
    from attnlab.target.rounds import SelectedRound

PLACE = 30
Reveal = Annotated[
    bool, typer.Option("--reveal", help="Also show what names the cause; counts as a hint.")
]


def command(
    ctx: typer.Context,
    what: NameOrFile = "",
    reveal: Reveal = False,
    timeout: Timeout = "",
    memory: Memory = "",
    json: Json = False,
) -> int:
    """Run a file: the task, every step, what to do next.

    Findings that name the cause are left out; --reveal shows them. In an interview, or beside one
    started file, no NAME is needed.
    """
    from attnlab.commands.rounds import find_round, usual_name
    from attnlab.records import Trace
    from attnlab.render.run import RunPage
    from attnlab.verdict import EXIT_CODES, hide_findings, make_verdict

    what = what or usual_name(ctx)
    if chosen_round := find_round(ctx, what):
        return _run_round(chosen_round, timeout, memory, json)
    chosen = select_file(ctx, what)
    job = challenge_job_for(chosen, limits(timeout, memory), "trace", "check")
    announce("running", chosen)
    report = run_job(job)
    verdict = make_verdict(chosen.challenge, chosen.file, report)
    whole = report.trace or Trace()
    solved = note_reveal(chosen, whole.findings, reveal)
    trace = whole if reveal or solved else hide_findings(whole)
    page = RunPage(
        challenge=chosen.challenge,
        file=chosen.label,
        verdict=verdict,
        report=report,
        trace=trace,
        hidden=len(whole.findings) - len(trace.findings),
        next=_next(chosen, verdict),
    )
    return emit(page, json, EXIT_CODES[verdict.outcome] or int(bool(whole.grave)))


def _run_round(chosen: SelectedRound, timeout: str, memory: str, json: bool) -> int:
    """Train a program once, and look at its goals."""
    from attnlab.practice.interviews import make_event
    from attnlab.render.round import RoundRunPage
    from attnlab.target.rounds import SECONDS, round_job
    from attnlab.verdict import EXIT_CODES, next_of_round

    bounds = limits(timeout, memory, usual=SECONDS)
    note(f"running {chosen.program.slug} {chosen.label}")
    with progress() as store:
        chosen, interview = join_interview(store, chosen)
        if interview:
            store.add_event(make_event(interview, "run"))
    report = run_program(round_job(chosen, ("train",), bounds))
    page = RoundRunPage(
        program=chosen.program,
        folder=chosen.label,
        report=report,
        notes=chosen.notes,
        round=chosen.bugs,
        stage=chosen.stage,
        next=next_of_round(report, chosen.shown_name, chosen.yours, graded=False),
    )
    return emit(page, json, EXIT_CODES[report.outcome])


def _next(chosen: Selection, verdict: Verdict) -> str:
    name = chosen.challenge.name
    if verdict.outcome == "passed":
        return f"attnlab grade {name} records it"
    if not chosen.yours:
        return f"attnlab start {name} copies the file here; fix it, then attnlab grade {name}"
    return f"fix {chosen.file}, then attnlab grade {name}"

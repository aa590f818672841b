from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from attnlab.commands.base import (
    Json,
    Memory,
    NameOrFile,
    Timeout,
    announce,
    challenge_job_for,
    join_interview,
    limits,
    note,
    note_reveal,
    parse_seed,
    progress,
    refuse_answers,
    run_job,
    run_program,
    select_file,
)
from attnlab.commands.output import Format, Html, emit_also

if TYPE_CHECKING:
    from attnlab.commands.base import Selection
    from attnlab.records import Job, Limits, Verdict
    from attnlab.records.diagnosis import Diagnosis
    from attnlab.records.practice import Event, Interview
    from attnlab.records.program import ProgramReport
    from attnlab.target.rounds import SelectedRound

PLACE = 40
DIFF_TIME = 20.0  # seconds that comparing with the solution may take
PATIENT = "60"  # seconds: torch.export alone takes some to load
All = Annotated[bool, typer.Option("--all", help="Do not stop at the first check that fails.")]
Full = Annotated[
    bool,
    typer.Option("--full", help="Also run what takes long: attnlab explain gradcheck, exports."),
]
Steps = Annotated[
    bool, typer.Option("--steps", help="Also show the steps around the first failure.")
]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Repeat a grade with its seed.")]
Reveal = Annotated[
    bool,
    typer.Option(
        "--reveal",
        help="Name the line that differs, which counts as a hint; end the round of a program.",
    ),
]
File = Annotated[str | None, typer.Argument(metavar="[FILE]", help="The file to grade instead.")]


def command(
    ctx: typer.Context,
    what: NameOrFile = "",
    file: File = None,
    timeout: Timeout = "",
    memory: Memory = "",
    everything: All = False,
    full: Full = False,
    seed: Seed = "",
    steps: Steps = False,
    reveal: Reveal = False,
    html: Html = "",
    form: Format = "",
    json: Json = False,
) -> int:
    """Grade your file, or a program's folder, and say why.

    NAME alone takes ./NAME.py when it is there, else the file as it was shipped. The first check
    that fails ends it, unless --all is given. In an interview, or beside one started file, no NAME
    is needed.
    """
    from dataclasses import replace

    from attnlab.commands.next import find_following
    from attnlab.commands.rounds import find_round, usual_name
    from attnlab.render.grade import GradePage
    from attnlab.target.rounds import SECONDS
    from attnlab.verdict import EXIT_CODES, make_verdict, steps_around

    what = what or usual_name(ctx)
    if chosen_round := find_round(ctx, what, file):
        bounds = limits(timeout, memory, usual=SECONDS)
        if everything:
            note("--all shows no more here: the parts of a round are named at its end")
        return _grade_round(chosen_round, bounds, parse_seed(seed), reveal, json, html, form)
    chosen = select_file(ctx, what, file)
    whole = everything or chosen.challenge.bugs  # which bugs are gone takes all checks
    stages: tuple[Literal["trace", "check"], ...] = ("trace", "check") if steps else ("check",)
    job = challenge_job_for(chosen, limits(timeout or (PATIENT if full else ""), memory), *stages)
    job = replace(job, until="end" if whole else "reason", full=full, seed=parse_seed(seed))
    announce("grading", chosen)
    report = run_job(job)
    verdict = make_verdict(chosen.challenge, chosen.file, report)
    if chosen.yours:
        with progress() as store:
            event = _grade_event(chosen, job.candidate.text, verdict)
            store.add_grade(event.base, verdict.outcome, verdict.score, chosen.file, event)
    if not chosen.yours and verdict.outcome != "passed":
        name = chosen.challenge.name
        start = f"there is no ./{name}.py in this folder: attnlab start {name} writes it; fix that"
        verdict = replace(verdict, next=f"{start}, then attnlab grade {name}")
    elif verdict.outcome == "passed":
        following = find_following(ctx, chosen.challenge.slug).command
        if following:
            verdict = replace(verdict, next=f"{verdict.next}; {following} goes on")
    page = GradePage(challenge=chosen.challenge, file=chosen.label, verdict=verdict)
    if reveal and verdict.outcome == "failed":
        page = replace(page, compared=True, diagnosis=_compare_with_solution(chosen, job))
        note_reveal(chosen, page.diagnosis, reveal)
    if steps and report.trace and verdict.outcome != "passed":
        page = replace(page, steps=steps_around(report.trace, verdict))
    return emit_also(page, json, EXIT_CODES[verdict.outcome], html, form)


def _grade_event(chosen: Selection, text: str, verdict: Verdict) -> Event:
    """What is kept of a grade; one of the file as it was given is no try."""
    from attnlab.catalogue.starter import is_untouched
    from attnlab.practice.answers import UNTOUCHED
    from attnlab.records.practice import Event

    untouched = UNTOUCHED if is_untouched(chosen.challenge, text) else ""
    name = os.fsencode(chosen.file).decode("utf-8", "backslashreplace")  # it may be any bytes
    slug, outcome = chosen.challenge.slug, verdict.outcome
    return Event(kind="grade", base=slug, outcome=outcome, question=untouched, text=name)


def _compare_with_solution(chosen: Selection, job: Job) -> tuple[Diagnosis, ...]:
    """Where the file parts from right ones, in the style that fits it best, and how; the lines of
    these stay hidden."""
    from dataclasses import replace
    from pathlib import Path

    from attnlab.diagnosis.pool import agreed
    from attnlab.target.source import read_source

    seconds = max(job.limits.seconds, DIFF_TIME)
    limits = replace(job.limits, seconds=seconds)
    found: list[tuple[Diagnosis, ...]] = []
    for path in (chosen.challenge.solution, *chosen.challenge.alternatives):
        right = replace(read_source(Path(path)), name=job.candidate.name)
        report = run_job(replace(job, reference=right, stages=("diff",), limits=limits))
        found.append(report.diff.diagnosis if report.diff else ())
        if found[-1] and all(each.confirmed for each in found[-1]):
            break
    return tuple(
        replace(each, their_file="", their_line=0, their_end_line=0, their_source="", fix="")
        for each in agreed(found)
        if each.line
    )


def _grade_round(
    chosen: SelectedRound,
    bounds: Limits,
    seed: int | None,
    reveal: bool,
    json: bool,
    html: str,
    form: str,
) -> int:
    """Grade a program: parts are counted, and named once the round has ended."""
    from dataclasses import replace

    from attnlab.practice.rating import price_of_a_hint
    from attnlab.render.round import RoundGradePage
    from attnlab.render.stage import next_stage
    from attnlab.target.rounds import GRADE, round_job
    from attnlab.verdict import EXIT_CODES, grade_outcome, next_of_round

    program = chosen.program
    note(f"grading {program.slug} {chosen.label}")
    with progress() as store:
        if reveal:
            refuse_answers(store, program.slug, "--reveal")
        chosen, interview = join_interview(store, chosen)
    report = run_program(round_job(chosen, GRADE, bounds, seed or 0))
    page = RoundGradePage(
        program=program,
        folder=chosen.label,
        report=report,
        ended=reveal or (report.outcome == "passed" and not interview),
        notes=chosen.notes,
        next=next_of_round(report, chosen.shown_name, chosen.yours, graded=True, ended=reveal),
    )
    if interview and report.outcome in ("passed", "failed"):
        advice = f"{next_stage(program, report)}attnlab interview submit hands in"
        if not report.passed:
            name = program.name
            advice = f"fix more, then attnlab grade {name}; attnlab hint {name} gives a hint"
        if report.outcome == "failed" and not chosen.stage:
            advice += f", {price_of_a_hint(interview.help, len(report.bugs))}"
        page = replace(page, next=advice)
    elif chosen.stage and report.outcome == "passed" and not report.passed:
        place = chosen.folder
        hint = f"attnlab hint {place} gives a hint; attnlab grade {place} grades again"
        page = replace(page, next=hint)
    elif chosen.yours and report.passed:
        skipped = bool(chosen.stage and not chosen.bugs)
        page = replace(page, next=next_stage(program, report, skipped) + page.next)
    _keep_round_grade(chosen, interview, report, reveal)
    return emit_also(page, json, EXIT_CODES[grade_outcome(report)], html, form)


def _keep_round_grade(
    chosen: SelectedRound, interview: Interview | None, report: ProgramReport, reveal: bool
) -> None:
    """Whether a program is solved in an interview is known at its end."""
    from attnlab.practice.changes import grade_event
    from attnlab.practice.stages import keep_stage

    program = chosen.program
    with progress() as store:
        if interview:
            store.add_event(grade_event(program, interview, "grade", report, chosen.files))
        elif chosen.yours:
            store.add_grade(program.slug, report.outcome, report.score, chosen.folder)
        keep_stage(store, program, chosen.stage, report, interview)
        if reveal and report.outcome != "passed":
            store.mark_revealed(program.slug)
            store.mark_solution_seen(program.slug)  # bugs are named: a later pass is no find

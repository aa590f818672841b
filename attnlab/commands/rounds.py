"""What commands share about rounds: which one is meant, and the interview that it belongs to."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from attnlab.commands.base import catalogue, limits, note, progress, run_program, show_clock
from attnlab.files import shown_folder, shown_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnlab.progress import Progress
    from attnlab.records import Finding
    from attnlab.records.practice import Interview
    from attnlab.records.program import Program, ProgramReport
    from attnlab.records.scorecard import Scorecard
    from attnlab.records.triage import Suspicion
    from attnlab.render.interview import InterviewStatusPage
    from attnlab.target.rounds import SelectedRound


def interview_program(ctx: typer.Context, interview: Interview) -> Program:
    from attnlab.catalogue.programs import read_program
    from attnlab.errors import Refused

    if interview.tasks:
        hint = "attnlab interview answer ANSWER answers the task that is open"
        raise Refused(f"the {interview.name} round is about no program, and has no notes", hint)
    entry = catalogue(ctx).find_program(interview.slug)
    program = read_program(Path(entry.folder)) if entry else None
    known = program.patches if program else {}
    if program is None or not interview.bugs or not set(interview.bugs) <= known.keys():
        raise Refused(
            f"interview {interview.number} is about {interview.slug} of another version of attnlab",
            "attnlab interview abandon drops it",
        )
    return program


def past_scorecards(ctx: typer.Context, interviews: Sequence[Interview]) -> list[Scorecard]:
    """Those of the interviews that ended, but for those about programs of another version."""
    from attnlab.errors import Refused
    from attnlab.practice.scorecard import build_scorecard, last_report

    cards = []
    for interview in interviews:
        if (closing := interview.closing) and closing.kind == "end":
            with suppress(Refused):
                program = interview_program(ctx, interview)
                report = last_report(interview)
                cards.append(build_scorecard(program, interview, report, closing.seconds))
    return cards


def interview_folder(interview: Interview) -> Path:
    """Where its files lie: where it was started, else in this folder."""
    there, here = Path(interview.path), Path(interview.folder)
    return here if here.is_dir() and not there.is_dir() else there


def status_page(ctx: typer.Context, interview: Interview) -> InterviewStatusPage:
    """How the interview stands now; raises `Refused` where its program is of another version."""
    from attnlab.practice.stages import stage_cards
    from attnlab.render.interview import InterviewStatusPage

    program = interview_program(ctx, interview)
    now, folder = time.time(), interview_folder(interview)
    return InterviewStatusPage(
        interview=interview,
        folder=shown_folder(folder),
        stages=stage_cards(program, interview, interview.elapsed(now)),
        now=now,
        gone=not folder.is_dir(),
        questions=len(program.questions),
    )


def next_after_round(ctx: typer.Context) -> str:
    """What comes next in the interview going on, or after the round solved last; "" for neither."""
    from attnlab.catalogue.programs import read_program
    from attnlab.errors import Refused
    from attnlab.practice.interviews import current
    from attnlab.practice.stages import events_of_round, has_passed, open_stage

    with progress() as store:
        if interview := current(store):
            with suppress(Refused):
                return status_page(ctx, interview).next
            return "attnlab interview status"
        last = next(reversed(store.events()), None)
        entry = catalogue(ctx).find_program(last.base) if last else None
        if not last or not entry or store.challenge_progress(last.base).status != "solved":
            return ""
        program = read_program(Path(entry.folder))
        events = events_of_round(store, program)
    draws = "attnlab interview start draws another round"
    left = [stage.id for stage in program.stages if not has_passed(events, stage.id)]
    *_, done = ["", *(e.kind for e in events if e.kind in ("grade", "stage", "end"))]
    if done == "end" or not left or not Path(program.name).is_dir():
        return draws
    if left[0] == open_stage(events):
        return f"attnlab grade {program.name} grades stage {left[0]}; {draws}"
    return f"attnlab interview stage {program.name} goes on with {left[0]}; {draws}"


def require_folder(interview: Interview) -> Path:
    """Where its files lie; raises `Refused` where they are gone."""
    from attnlab.errors import Refused

    folder = interview_folder(interview)
    if folder.is_dir():
        return folder
    raise Refused(
        f"{shown_folder(folder)} is gone: the files of interview {interview.number} were there",
        f"attnlab reset {interview.name} writes them again; the clock and the notes are kept",
    )


def price_of_triage(ctx: typer.Context, target: str) -> str:
    """What a triage of the target makes of the rating; "" outside of the bugs of an interview."""
    with progress() as store:
        interview = _interview_about(store, target)
    if not interview or interview.of_kind("stage"):
        return ""
    from attnlab.practice.rating import price_of_a_hint  # of an interview: few are in one

    if interview.tasks:
        return "in this round a triage that names something costs as a hint for the task does"
    price = price_of_a_hint(interview.help, _count_bugs(ctx, interview))
    return f"in this interview a triage that names something costs as a hint does: {price}"


def _interview_about(store: Progress, target: str) -> Interview | None:
    """The interview that is going on, if the target lies in a file of it."""
    from attnlab.practice.interviews import current

    interview = current(store)
    file = Path(target.partition(":")[0]).resolve()
    within = interview and interview_folder(interview).resolve() in file.parents
    return interview if within else None


def task_of_round(file: str) -> str:
    """The challenge that the round going on asks for in this file; "" of any other file."""
    with progress() as store:
        interview = _interview_about(store, file)
    tasks = enumerate(interview.tasks if interview else (), 1)
    return {f"task{n}.py": task.id for n, task in tasks if task.is_file}.get(Path(file).name, "")


def _count_bugs(ctx: typer.Context, interview: Interview) -> int:
    patches = interview_program(ctx, interview).patches
    return sum(not patches[bug].decoy for bug in interview.bugs)


def note_triage(ctx: typer.Context, target: str, named: Sequence[Suspicion | Finding]) -> None:
    """Keep what a triage named, where it looked at a file of the interview going on."""
    from attnlab.practice.interviews import make_event
    from attnlab.practice.notes import bugs_at
    from attnlab.practice.rating import cost_of_hints
    from attnlab.target.rounds import read_files

    said = " ".join(f"{one.file}:{one.line} {one.message}" for one in named)
    places = [(file, int(line)) for file, line in re.findall(r"(\w+\.py):(\d+)", said)]
    with progress() as store:
        interview = _interview_about(store, target)
        if not interview:
            return
        if interview.tasks:
            number = Path(target.partition(":")[0]).stem.removeprefix("task")
            store.add_event(make_event(interview, "hint", question=number))
            return
        hints, triages = (len(interview.of_kind(kind)) for kind in ("hint", "triage"))
        program = interview_program(ctx, interview)
        files = read_files(program, interview_folder(interview))
        bugs = bugs_at(program, interview.bugs, files, places)
        store.add_event(make_event(interview, "triage", text=" ".join(bugs)))
    show_clock(interview)
    if not interview.of_kind("stage"):
        note(cost_of_hints(hints, _count_bugs(ctx, interview), triages + 1))


def find_round(ctx: typer.Context, what: str, folder: str | None = None) -> SelectedRound | None:
    """The round that WHAT names, or None. In an interview about a program its name means the files
    of the interview, from whatever folder it is typed."""
    from attnlab.target.rounds import select_round

    chosen = select_round(catalogue(ctx), what, folder)
    if chosen is None or chosen.yours:
        return chosen
    from attnlab.practice.interviews import current  # slow, and of no use to a single file

    with progress() as store:
        interview = current(store)
    if interview is None or interview.slug != chosen.program.slug:
        return chosen
    return select_round(catalogue(ctx), what, shown_path(require_folder(interview))) or chosen


def training_script(ctx: typer.Context, target: str) -> str:
    """The file that trains a program, in an interview that of its round; else the target."""
    from attnlab.target.rounds import script_of_round

    found = catalogue(ctx)
    chosen = find_round(ctx, target) if found.find_program(target) else None
    return script_of_round(found, chosen.folder if chosen and chosen.yours else target)


def usual_name(ctx: typer.Context) -> str:
    """What is meant where no name is typed: the interview that is going on, else the one challenge
    or program that was started in this folder; raises `Refused` where there is none."""
    from attnlab.commands.list import list_page
    from attnlab.errors import Refused
    from attnlab.practice.interviews import current

    with progress() as store:
        interview = current(store)
    if interview and interview.tasks:
        hint = "attnlab interview submit grades the file of its open task"
        raise Refused(f"the {interview.name} round is about no program", hint)
    if interview:
        return interview.name
    here = sorted(slug.partition("/")[2] for slug in list_page(ctx).here)
    if len(here) == 1:
        return here[0]
    known = f"here are {', '.join(here)}" if here else "attnlab list shows the names"
    hint = f"type {ctx.command_path} NAME; {known}"
    raise Refused("Missing argument 'NAME', and no interview is going on", hint)


def interview_round(ctx: typer.Context, interview: Interview) -> SelectedRound:
    """The folder of an interview, whatever its mark says of its bugs."""
    from dataclasses import replace

    from attnlab.catalogue.round_mark import MARK
    from attnlab.practice.stages import open_stage
    from attnlab.target.rounds import select_round, with_stage

    folder = require_folder(interview)
    chosen = select_round(catalogue(ctx), interview.name, shown_path(folder))
    assert chosen is not None
    notes = tuple(each for each in chosen.notes if MARK not in each)  # its bugs are known anyway
    chosen = replace(chosen, bugs=interview.bugs, notes=notes)
    return with_stage(chosen, open_stage(interview.events))


def grade_interview(
    chosen: SelectedRound, interview: Interview, timeout: str, memory: str
) -> ProgramReport:
    from attnlab.target.rounds import GRADE, SECONDS, round_job

    note(f"grading {chosen.program.slug} {chosen.label}")
    show_clock(interview)
    bounds = limits(timeout, memory, usual=SECONDS)
    for each in chosen.notes:
        note(each)
    return run_program(round_job(chosen, GRADE, bounds))

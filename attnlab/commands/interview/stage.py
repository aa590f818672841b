"""Open the next stage of a round: a task after its bugs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab.commands.base import Json, catalogue, emit, progress, show_clock
from attnlab.commands.rounds import interview_folder, interview_program
from attnlab.files import shown_path

if TYPE_CHECKING:
    from attnlab.progress import Progress
    from attnlab.records.practice import Interview
    from attnlab.records.program import Program, Stage

StageName = Annotated[
    str, typer.Argument(metavar="[NAME]", help="A stage, a program, or PROGRAM/STAGE.")
]
SkipBugs = Annotated[
    bool, typer.Option("--skip-bugs", help="Begin with the right program, in a folder of its own.")
]


def stage(
    ctx: typer.Context, name: StageName = "", skip_bugs: SkipBugs = False, json: Json = False
) -> int:
    """Open the next stage after the bugs, with its given files."""
    import json as json_format

    from attnlab.catalogue.rounds import write_stage
    from attnlab.practice.changes import describe_changes
    from attnlab.practice.interviews import current, keep, round_event
    from attnlab.practice.stages import OPEN
    from attnlab.render.stage import StageStartPage
    from attnlab.target.rounds import read_files

    with progress() as store:
        interview = current(store)
        program, wanted = _named_program(ctx, store, name, interview)
        if skip_bugs:
            chosen, folder, bugs = _skip_bugs(program, wanted, interview)
            store.mark_solution_seen(program.slug)
        else:
            chosen, folder, bugs = _next_stage(store, program, wanted, interview)
        changes = json_format.dumps(describe_changes(program, bugs, read_files(program, folder)))
        copies = write_stage(program, chosen, folder, bugs)
        known = {"question": chosen.id, "outcome": OPEN, "text": changes}
        keep(store, round_event(program, interview, "stage", **known))
    if interview:
        show_clock(interview)
    place, kept = shown_path(folder), tuple(copies)
    page = StageStartPage(program=program, stage=chosen, folder=place, kept=kept)
    return emit(page, json)


def _named_program(
    ctx: typer.Context, store: Progress, name: str, interview: Interview | None
) -> tuple[Program, str]:
    """The program that is meant, and what is left of the name: a stage, or ""."""
    from attnlab.catalogue.programs import read_program
    from attnlab.errors import Refused
    from attnlab.practice.interviews import all_interviews

    if interview:
        return interview_program(ctx, interview), name.removeprefix(f"{interview.name}/")
    found = catalogue(ctx)
    for program, _, stage_name in (name.rpartition("/"), (name, "", "")):
        if program and (entry := found.find_program(program)):
            return read_program(Path(entry.folder)), stage_name
    ended = [i for i in all_interviews(store) if found.find_program(i.slug)]
    if not ended:
        raise Refused(
            "no interview was begun yet, so it is not known which program is meant",
            "name it, as in attnlab interview stage char-gpt",
        )
    return interview_program(ctx, ended[-1]), name


def _next_stage(
    store: Progress, program: Program, wanted: str, interview: Interview | None
) -> tuple[Stage, Path, tuple[str, ...]]:
    """The stage that opens in the folder of the round, and the bugs that were in it."""
    from attnlab.catalogue.round_mark import read_mark
    from attnlab.errors import Refused
    from attnlab.practice.changes import differ_from_passed
    from attnlab.practice.stages import choose_stage, events_of_round, open_stage
    from attnlab.target.rounds import read_files

    events = events_of_round(store, program)
    chosen = choose_stage(program, wanted, events)
    folder = interview_folder(interview) if interview else Path(program.name)
    if not folder.is_dir():
        raise Refused(
            f"there is no {shown_path(folder)}/ in this folder",
            f"go where it is, or attnlab reset {program.name} writes it again",
        )
    files, name = read_files(program, folder), interview.name if interview else program.name
    if chosen.id != open_stage(events) and differ_from_passed(program, events, files):
        raise Refused(
            f"the files in {shown_path(folder)}/ are not those that passed: they changed since",
            f"attnlab grade {name} grades what is there now; once it passes, the stage opens",
        )
    mark = read_mark(folder)
    return chosen, folder, interview.bugs if interview else mark.bugs if mark else ()


def _skip_bugs(
    program: Program, wanted: str, interview: Interview | None
) -> tuple[Stage, Path, tuple[str, ...]]:
    """The stage that opens in a folder of its own, beside the right program."""
    from attnlab.errors import Refused
    from attnlab.practice.stages import find_stage, require_stages

    if interview:
        raise Refused(
            "--skip-bugs shows the right program, and an interview is going on",
            "attnlab interview end ends it, then ask again",
            "--skip-bugs",
        )
    require_stages(program)
    chosen = find_stage(program, wanted or program.stages[0].id)
    folder = Path(f"{program.name}-{chosen.id}")
    if folder.exists():
        raise Refused(
            f"./{folder} already exists and was not changed",
            f"attnlab grade ./{folder} goes on with it",
            f"./{folder}",
        )
    return chosen, folder, ()

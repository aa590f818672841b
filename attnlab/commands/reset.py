from pathlib import Path
from typing import Annotated

import typer

from attnlab.commands.base import (
    Json,
    NameOrFile,
    catalogue,
    emit,
    progress,
    running_interview,
    select_file,
)

PLACE = 61
File = Annotated[str | None, typer.Argument(metavar="[FILE]", help="Of a program: only this file.")]


def command(ctx: typer.Context, what: NameOrFile, file: File = None, json: Json = False) -> int:
    """Put a challenge's file back, or a program's; yours is kept."""
    from attnlab.catalogue.starter import write_starter
    from attnlab.errors import Refused
    from attnlab.records.practice import Event
    from attnlab.render.challenge import StartPage

    path = Path(what)
    name, around = path.name, path.parent.name
    if file is None and around and catalogue(ctx).find_program(around):  # a file of a round
        name, file = around, path.name
    if entry := catalogue(ctx).find_program(name):
        return _reset_round(entry.folder, file, json)
    if file:
        raise Refused(f"{what} has one file", f"attnlab reset {what} puts it back", file)
    chosen = select_file(ctx, what)
    where = chosen.path if chosen.yours else None
    written, kept = write_starter(chosen.challenge, where, replace=True)
    with progress() as store:
        store.add_event(Event(kind="start", base=chosen.challenge.slug))
    return emit(StartPage(challenge=chosen.challenge, file=written, kept=kept), json)


def _reset_round(entry: str, file: str | None, json: bool) -> int:
    from attnlab.catalogue.programs import read_program
    from attnlab.catalogue.round_mark import read_mark
    from attnlab.catalogue.rounds import restore_file, write_round
    from attnlab.errors import Refused, Unreadable
    from attnlab.render.round import RoundStartPage

    program = read_program(Path(entry))
    folder = Path(program.name)
    try:
        mark = read_mark(folder)
    except Unreadable:  # of another format: the round is written anew
        mark = None
    bugs = mark.bugs if mark and set(mark.bugs) <= program.patches.keys() else program.chosen
    with progress() as store:
        interview = running_interview(store, program.slug)
    if interview and set(interview.bugs) <= program.patches.keys():
        bugs = interview.bugs
    if file is None:
        kept = write_round(program, bugs, replace=True, anew=False)
    elif folder.is_dir():
        kept = [restore_file(program, folder, Path(file).name, bugs)]
    else:
        hint = f"attnlab start {program.name} writes it"
        raise Refused(f"there is no ./{folder}/ in this folder", hint)
    page = RoundStartPage(
        program=program,
        folder=f"./{folder}",
        kept=tuple(filter(None, kept)),
        round=bugs,
        file=Path(file).name if file else "",
    )
    return emit(page, json)

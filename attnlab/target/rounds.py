"""Find the round that a user names, and turn its folder into a job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attnlab.catalogue.load import Catalogue
from attnlab.catalogue.round_mark import MARK, read_mark
from attnlab.errors import AttnlabError, Refused, Unreadable
from attnlab.files import shown_folder
from attnlab.records import Limits, record
from attnlab.suggest import did_you_mean
from attnlab.target.source import read_source

if TYPE_CHECKING:  # every command about a file asks whether it is a round: that must cost nothing
    from attnlab.records.program import Files, Program, ProgramJob

SECONDS = 60.0  # that a program may take, where nothing else is asked for
SCRIPT = "train.py"  # of every program: the file that trains
Stage = Literal["train", "material", "grade", "stage", "goals", "bugs"]
GRADE: tuple[Stage, ...] = ("grade", "goals", "bugs")


@record
class SelectedRound:
    """A program, the files that are meant, and the bugs they were given."""

    program: Program
    files: Files
    folder: str  # as messages show it
    yours: bool  # else as shipped
    bugs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    stage: str = ""  # the one after the bugs that is open

    @property
    def shown_name(self) -> str:
        """What commands call it in this folder: a program, or the folder where its files lie."""
        here = Path(self.folder).absolute() in (Path.cwd() / self.program.name, Path.cwd())
        beside = self.stage and not self.bugs
        return self.folder if self.yours and (beside or not here) else self.program.name

    @property
    def label(self) -> str:
        if not self.yours:
            return "as shipped"
        return shown_folder(Path(self.folder))


def select_round(
    catalogue: Catalogue, what: str, folder: str | None = None
) -> SelectedRound | None:
    """The round that WHAT names, a program or a folder of `attnlab start`; None if it is neither.

    Raises `Refused` or `Unreadable` where the folder lacks a file or a file cannot be read.
    """
    path = Path(folder) if folder else None
    entry = catalogue.find_program(what) if "." not in what[:1] else None
    if entry is None:
        path = Path(what.rstrip("/") or what)
        if path.suffix == ".py" and (path.parent / MARK).is_file():  # one of its files
            if not path.exists():
                known = [each.name for each in sorted(path.parent.glob("*.py"))]
                hint = did_you_mean(path.name, known) or f"there is {', '.join(known)}"
                raise Unreadable(f"{path}: no such file", hint, str(path))
            path = path.parent
        mark = read_mark(path) if path.is_dir() else None
        entry = catalogue.find_program(mark.program) if mark else None
        if entry is None and path.is_dir():
            raise Refused(
                f"{what} is a folder without {MARK}, so it is not known which program it is",
                f"name the program too, as in attnlab grade char-gpt {what}",
                what,
            )
        if entry is None:
            return None
    from attnlab.catalogue.programs import compose, read_program

    program = read_program(Path(entry.folder))
    if path is None and Path(program.name).is_dir():
        path = Path(program.name)
    elif path is None and (mark := read_mark(Path())) and mark.program == program.slug:
        path = Path()  # the command was typed inside the folder
    if path is None:
        files = compose(program, program.chosen)
        return SelectedRound(
            program=program, files=files, folder=program.name, yours=False, bugs=program.chosen
        )
    return started_round(program, path)


def started_round(program: Program, folder: Path) -> SelectedRound:
    """The round whose files lie in a folder; raises `Refused` or `Unreadable`."""
    if not folder.is_dir():
        raise Refused(f"{folder} is not a folder", f"attnlab start {program.name} writes one")
    notes = []
    try:
        mark = read_mark(folder)
        unknown = f"{folder / MARK} is missing or of no use: which bugs are gone cannot be told"
    except Unreadable as error:  # the files can be graded all the same
        mark, unknown = None, f"{error.message}: which bugs are gone cannot be told; {error.hint}"
    if mark and mark.program != program.slug:
        raise Refused(
            f"{folder} is a round of {mark.program}, not of {program.slug}",
            f"attnlab grade {folder} grades it",
        )
    known = bool(mark) and all(bug in program.patches for bug in mark.bugs) if mark else False
    if not known:
        notes.append(unknown)
    files = {name: _read_edited(program, folder, name) for name in program.edit}
    notes += _changed_files(folder, {name: program.files[name] for name in program.given})
    files |= {name: program.files[name] for name in program.given}
    chosen = SelectedRound(
        program=program,
        files=files,
        folder=folder.as_posix(),
        yours=True,
        bugs=mark.bugs if mark and known else (),
        notes=tuple(notes),
    )
    return with_stage(chosen, mark.stage if mark else "")


def with_stage(chosen: SelectedRound, name: str) -> SelectedRound:
    """The round with a stage of it open, and so with the files that it and those before it gave."""
    stage = chosen.program.stage(name)
    if stage is None or name == chosen.stage:
        return chosen
    folder, given = Path(chosen.folder), chosen.program.given_by(stage)
    here = {n: text for n, text in given.items() if n in stage.given or (folder / n).exists()}
    notes, files = _changed_files(folder, here), chosen.files | given
    return replace(chosen, stage=name, files=files, notes=(*chosen.notes, *notes))


def _changed_files(folder: Path, given: Files) -> list[str]:
    """What to say of files that are not as they were given."""
    return [
        f"{path} is not as it was given; the given one is used"
        for path, text in ((folder / name, text) for name, text in given.items())
        if not path.is_file() or path.read_bytes() != text.encode()
    ]


def _read_edited(program: Program, folder: Path, name: str) -> str:
    path = folder / name
    if not path.exists():
        hint = f"attnlab reset {program.name} {name} puts it back as it was given"
        raise Refused(f"{path} is missing", hint, str(path))
    return read_source(path).text


def script_of_round(catalogue: Catalogue, target: str) -> str:
    """The file that trains, where the target is a program or the folder of one; else the target.
    Raises `Refused` where the program was not started here."""
    entry = catalogue.find_program(target) if "." not in target else None
    folder = Path(entry.name if entry else target)
    if (folder / MARK).is_file():
        return (folder / SCRIPT).as_posix()
    if entry is None:
        return target
    hint = f"attnlab start {entry.name} writes ./{entry.name}/; then type this again"
    raise Refused(f"{target} is a program, and there is no folder ./{folder} here", hint, target)


def round_job(
    chosen: SelectedRound, stages: tuple[Stage, ...], limits: Limits, seed: int = 0
) -> ProgramJob:
    """The job that trains or grades the files of a round, and a stage of it that is open."""
    from attnlab.records.program import ProgramJob

    if "grade" in stages and chosen.stage:
        stages = (*(stage for stage in stages if stage != "bugs"), "stage")
    return ProgramJob(
        program=chosen.program,
        files=chosen.files,
        label=chosen.folder,
        stages=stages,
        open_stage=chosen.stage,
        bugs=chosen.bugs,
        seed=seed,
        limits=limits,
    )


def read_files(program: Program, folder: Path) -> Files:
    """Those of the files to edit that can be read."""
    found = {}
    for name in program.edit:
        try:
            found[name] = read_source(folder / name).text
        except AttnlabError:
            continue
    return found

"""Rounds on disk: a folder ./NAME/ with the files of a program and some of its bugs in them."""

import os
from collections.abc import Sequence
from pathlib import Path

from attnlab.catalogue.programs import check_compatible, compose, draw_bugs
from attnlab.catalogue.round_mark import MARK, mark_text
from attnlab.errors import Refused
from attnlab.files import shown_path, write_whole
from attnlab.records.program import Files, Program, Stage


def choose_bugs(program: Program, bugs: str, seed: int | None) -> tuple[str, ...]:
    """The bugs and decoys of a round: named, drawn, or those of the program's own round."""
    if bugs and seed is not None:
        raise Refused("--bugs and --seed both choose the bugs", "give one of them", "--bugs")
    if seed is not None:
        return draw_bugs(program, seed)
    if not bugs:
        return program.chosen
    chosen = tuple(name.strip() for name in bugs.split(",") if name.strip())
    check_compatible(program, chosen)
    return chosen


def write_round(
    program: Program, bugs: Sequence[str], *, replace: bool = False, anew: bool = True
) -> list[str]:
    """Write ./NAME/ with these bugs; returns where files that stood there are kept. `anew`: without
    the files that a stage gave."""
    folder = Path(program.name)
    if os.path.lexists(folder) and not replace:
        raise Refused(
            f"./{folder} already exists and was not changed",
            f"continue with it: attnlab grade {folder}; or start over with --force, "
            "which keeps a copy of the old files",
            f"./{folder}",
        )
    if anew:
        _remove_given(program, folder)
    return _write_all(folder, compose(program, bugs) | {MARK: mark_text(program.slug, bugs)})


def _remove_given(program: Program, folder: Path) -> None:
    """Remove the files that stages gave, where they are as they were given."""
    for stage in program.stages:
        for path, text in ((folder / name, text) for name, text in stage.given.items()):
            if path.is_file() and path.read_bytes() == text.encode():
                path.unlink()


def write_stage(program: Program, stage: Stage, folder: Path, bugs: Sequence[str]) -> list[str]:
    """Put the files of a stage into the folder of a round with these bugs; into one that is not
    there yet, those of the right program as well. Returns where files that stood there are kept."""
    files = {} if folder.is_dir() else program.files
    return _write_all(folder, files | stage.given | {MARK: mark_text(program.slug, bugs, stage.id)})


def _write_all(folder: Path, texts: Files) -> list[str]:
    try:
        folder.mkdir(exist_ok=True)
        return [kept for name, text in texts.items() if (kept := _write(folder / name, text))]
    except OSError as error:
        raise Refused(
            f"{shown_path(folder)} cannot be written: {error.strerror or error}",
            "change to a folder where you can write",
            shown_path(folder),
        ) from None


def restore_file(program: Program, folder: Path, name: str, bugs: Sequence[str]) -> str:
    """Put one file back as the round, or one of its stages, gave it; returns where the old one is
    kept, or ""."""
    texts = compose(program, bugs)
    for stage in program.stages:
        texts |= stage.given
    if name not in texts:
        hint = f"Its files are {', '.join(texts)}."
        raise Refused(f"{program.name} has no file {name}", hint, name)
    return "".join(_write_all(folder, {name: texts[name]}))


def _write(path: Path, text: str) -> str:
    """Write a file; one that stood there with another text is kept as FILE.1, FILE.2, ..."""
    if path.is_file() and path.read_bytes() == text.encode():
        return ""
    return write_whole(path, text, keep=path.name != MARK)

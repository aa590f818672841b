"""Texts of a program's files, and edits of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.catalogue.toml_rules import Document, InvalidValue
from attnlab.files import read_bytes, shown_path
from attnlab.records.patch import Edit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attnlab.records.program import Files

LARGEST = 256 << 10  # bytes of a file of a program


def read_files(folder: Path, names: Iterable[str]) -> Files:
    return {name: read_text(folder / name) for name in names}


def read_text(path: Path) -> str:
    data = read_bytes(path, shown_path(path), LARGEST)
    return data.decode("utf-8").replace("\r\n", "\n")


def read_styles(folder: Path, files: Files, edit: Sequence[str]) -> dict[str, Files]:
    """Other right programs: a style holds the files that differ."""
    if not folder.is_dir():
        return {}
    return {
        style.name: files
        | {name: read_text(style / name) for name in edit if (style / name).exists()}
        for style in sorted(folder.iterdir())
        if style.is_dir() and style.name[0] not in "._"
    }


def read_edits(
    document: Document, said: Sequence[Any], files: Files, edit: Sequence[str], at: tuple[Any, ...]
) -> tuple[Edit, ...]:
    """The edits that a document lists `at` a place; raises `Unreadable`, which names the place."""
    try:
        return tuple(_inside(index, each, files, edit) for index, each in enumerate(said))
    except InvalidValue as wrong:
        raise document.error((*at, *wrong.at), wrong.says, wrong.hint) from None


def _inside(index: int, said: dict[str, str], files: Files, edit: Sequence[str]) -> Edit:
    try:
        return _edit(said, files, edit)
    except InvalidValue as wrong:
        raise wrong.inside(index) from None


def _edit(said: dict[str, str], files: Files, edit: Sequence[str]) -> Edit:
    file, old = said["file"], said["old"]
    if file not in edit:
        raise InvalidValue(f": {file} is not among the files to edit", hint=f"Name {edit[0]}.")
    count = files[file].count(old) if old else 0
    if count != 1:
        hint = "Copy the lines from base/, with enough around them to be found once."
        raise InvalidValue(f": `old` stands {count} times in {file}", hint=hint)
    return Edit(file=file, old=old, new=said["new"], start=files[file].index(old))


def apply_edits(files: Files, edits: Iterable[Edit]) -> Files:
    """The files with every edit made at its place in the right text."""
    texts = dict(files)
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = texts[edit.file]
        texts[edit.file] = text[: edit.start] + edit.new + text[edit.start + len(edit.old) :]
    return texts

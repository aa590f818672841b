"""The files of one folder of a catalogue."""

import os
import re
from pathlib import Path

from attnlab.errors import Unreadable
from attnlab.files import shown_path

SLUG = r"[a-z0-9]+(-[a-z0-9]+)*"
BASE_FILE, PROGRAM_FILE = "base.toml", "program.toml"
PROGRAMS = "programs"  # their topic
PATCHES = ("bugs", "tasks")  # of a base: the folders whose files are challenges
ALTERNATIVES = 2  # right solutions in another style that each folder has at least


def read_slug(folder: Path) -> str:
    """`attention/too-sharp`; raises `Unreadable` where that cannot be typed."""
    for part in (folder.parent.name, folder.name):
        check_slug(part, folder)
    return f"{folder.parent.name}/{folder.name}"


def check_slug(name: str, path: Path) -> None:
    """Raise `Unreadable` where what `path` is named after cannot be typed on the command line."""
    if not re.fullmatch(SLUG, name):
        hint = "Rename it, for example to too-sharp: it is typed on the command line."
        says = f'"{name}" is not a slug: use lower-case letters, digits and single hyphens'
        raise Unreadable(says, hint, shown_path(path))


def find_file(folder: Path, name: str) -> str:
    path = folder / name
    if not path.is_file():
        hint = "docs/challenge-format.md lists the files of a challenge."
        raise Unreadable(f"{name} is missing", hint, shown_path(path))
    return str(path)


def find_files(folder: Path, name: str, least: int) -> tuple[str, ...]:
    """The Python files of a subfolder; raises `Unreadable` where there are fewer than `least`."""
    found: list[str] = []
    if (folder / name).is_dir():
        with os.scandir(folder / name) as entries:
            found = sorted(e.path for e in entries if _is_source(e))
    if len(found) < least:
        hint = f"Add {least - len(found)} more; docs/challenge-format.md says what they are for."
        says = f"{name}/*.py: found {len(found)}, but at least {least} are needed"
        raise Unreadable(says, hint, shown_path(folder / name))
    return tuple(found)


def _is_source(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py") and entry.name[0] not in "._" and entry.is_file()

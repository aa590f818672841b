"""Write a challenge's file to the user's folder. An existing file is never overwritten."""

from __future__ import annotations

import os
from pathlib import Path

from attnlab.errors import Refused
from attnlab.records import Challenge

MARK = "# attnlab: "


def write_starter(
    challenge: Challenge, where: Path | None = None, *, replace: bool = False
) -> tuple[str, str]:
    """Write ./NAME.py, or `where`; returns the paths of the file and of the backup, if any."""
    path = where or Path(f"{challenge.name}.py")
    shown = str(path) if path.is_absolute() else f"./{path}"
    text = Path(challenge.file).read_text(encoding="utf-8")
    kept = ""
    try:
        if replace and os.path.lexists(path):
            kept = _set_aside(path)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(f"{MARK}{challenge.slug}\n{text}")
    except FileExistsError:
        name = challenge.name
        raise Refused(
            f"{shown} already exists and was not changed",
            f"continue with it: attnlab grade {name}; or start over: attnlab reset {name}, "
            "which keeps a copy of the old file",
            shown,
        ) from None
    except OSError as error:
        raise Refused(
            f"{shown} cannot be written: {error.strerror or error}",
            "change to a folder where you can write",
            shown,
        ) from None
    return shown, kept


def _set_aside(path: Path) -> str:
    """Renames `path` to the first free NAME.py.1, NAME.py.2, ..."""
    number = 1
    while os.path.lexists(kept := path.with_name(f"{path.name}.{number}")):
        number += 1
    path.rename(kept)
    return str(kept) if kept.is_absolute() else f"./{kept}"

"""Write a challenge's file to the user's folder. An existing file is never overwritten."""

import os
from pathlib import Path

from attnlab.catalogue.texts import shipped_text
from attnlab.errors import Refused
from attnlab.files import set_aside
from attnlab.records import Challenge

MARK = "# attnlab: "


def write_starter(
    challenge: Challenge, where: Path | None = None, *, replace: bool = False
) -> tuple[str, str]:
    """Write ./NAME.py, or `where`; returns the paths of the file and of the backup, if any."""
    path = where or Path(f"{challenge.name}.py")
    shown = _shown(path)
    text = shipped_text(challenge)
    backup = ""
    try:
        if replace and os.path.lexists(path):
            backup = _shown(set_aside(path))
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
    return shown, backup


def _shown(path: Path) -> str:
    return str(path) if path.is_absolute() else f"./{path}"

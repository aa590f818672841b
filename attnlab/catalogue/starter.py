"""Write a challenge's file to the user's folder. An existing file is never overwritten."""

import os
from pathlib import Path

from attnlab.catalogue.texts import mark, shipped_text
from attnlab.errors import Refused
from attnlab.files import write_whole
from attnlab.records import Challenge


def write_starter(
    challenge: Challenge, where: Path | None = None, *, replace: bool = False
) -> tuple[str, str]:
    """Write ./NAME.py, or `where`; returns the paths of the file and of the backup, if any."""
    path = where or Path(f"{challenge.name}.py")
    shown = _shown(path)
    if os.path.lexists(path) and not replace:
        name = challenge.name
        raise Refused(
            f"{shown} already exists and was not changed",
            f"continue with it: attnlab grade {name}; or start over: attnlab reset {name}, "
            "which keeps a copy of the old file",
            shown,
        )
    try:
        backup = write_whole(path, mark(challenge) + shipped_text(challenge), keep=True)
    except OSError as error:
        raise Refused(
            f"{shown} cannot be written: {error.strerror or error}",
            "change to a folder where you can write",
            shown,
        ) from None
    return shown, backup and _shown(Path(backup))


def mark_of(challenge: Challenge, text: str) -> str:
    """The line that a started file begins with; "" where it was deleted."""
    found = mark(challenge)
    return found if text.startswith(found) else ""


def is_untouched(challenge: Challenge, text: str) -> bool:
    """Whether a file is as it was given."""
    return text.removeprefix(mark_of(challenge, text)) == shipped_text(challenge)


def _shown(path: Path) -> str:
    return str(path) if path.is_absolute() else f"./{path}"

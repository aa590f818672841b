"""Read a file or pipe that may be anything, without hanging; write a file as a whole."""

import os
import select
import stat
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from attnlab.errors import Unreadable
from attnlab.suggest import did_you_mean

# Held by `ast.parse` where threads may parse: Python 3.11 counts the depth of a tree for all of
# them together, and raises a SystemError where one gives way to another within a tree.
PARSING = threading.Lock()

# Where the system keeps a user's data: a variable that may say so, and the usual folder.
DATA_VARIABLE, DATA_FOLDER = {
    "darwin": ("XDG_DATA_HOME", "~/Library/Application Support"),
    "win32": ("LOCALAPPDATA", "~/AppData/Local"),
}.get(sys.platform, ("XDG_DATA_HOME", "~/.local/share"))
# O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def read_bytes(path: Path, shown: str, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; raises `Unreadable`."""
    try:
        _must_be_regular(path, shown, path.stat())
        fd = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:
        raise _unreadable(path, shown, error) from None
    try:
        _must_be_regular(path, shown, os.fstat(fd))  # it may have been swapped since
        with os.fdopen(fd, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise _unreadable(path, shown, error) from None
    finally:
        os.close(fd)
    if len(data) > limit:
        hint = "Is it the right file? attnlab reads source text, not data."
        raise Unreadable(f"{shown} is larger than {limit >> 10} KiB", hint, shown)
    return data


class LineReader:
    """The lines of a pipe, each awaited until a deadline of time.monotonic()."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.rest = descriptor, b""

    def line(self, deadline: float) -> bytes:
        """The next line; raises `TimeoutError`, or `EOFError` where the other side has closed."""
        while b"\n" not in self.rest:
            left = max(0.0, deadline - time.monotonic())
            if not select.select([self.descriptor], [], [], left)[0]:
                raise TimeoutError
            piece = os.read(self.descriptor, 1 << 16)
            if not piece:
                raise EOFError
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\n")
        return line


def exists(path: Path) -> bool:
    """Whether anything is there; a name that no system can have is not."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def shown_path(path: Path) -> str:
    """The path as messages show it: relative to the current folder where it lies inside."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def shown_folder(path: Path) -> str:
    """A folder as messages show it: `./char-gpt/`, `./` for the current one, `/tmp/char-gpt/`,
    `../char-gpt/`."""
    shown = shown_path(path)
    whole = Path(shown).is_absolute() or shown.startswith("..")
    return "./" if shown == "." else f"{shown}/" if whole else f"./{shown}/"


def set_aside(path: Path) -> Path:
    """Rename a file to the first free NAME.1, NAME.2, ...; returns the new path."""
    number = 1
    while os.path.lexists(free := path.with_name(f"{path.name}.{number}")):
        number += 1
    return path.rename(free)


def write_whole(path: Path, text: str, *, keep: bool = False) -> str:
    """Write a file as a whole or, where that fails, not at all. Returns where the file that stood
    there is kept, if it is to be kept, or ""."""
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(text, encoding="utf-8", newline="\n")
        kept = str(set_aside(path)) if keep and os.path.lexists(path) else ""
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
    return kept


def absolute_path(file: str) -> str:
    """The full path of a file that others will read; raises `Unreadable` where they could not."""
    path = Path(file)
    try:
        _must_be_regular(path, file, path.stat())
        with path.open("rb"):
            return str(path.resolve())
    except (OSError, ValueError) as error:
        raise _unreadable(path, file, error) from None


def _must_be_regular(path: Path, shown: str, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFDIR:
        raise Unreadable(f"{shown} is a folder, not a file", _inside(path), shown)
    if kind != stat.S_IFREG:
        what = _KINDS.get(kind, "not a regular file")
        raise Unreadable(f"{shown} is {what}, not a regular file", "Name a file on disk.", shown)


def _unreadable(path: Path, shown: str, error: OSError | ValueError) -> Unreadable:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return Unreadable(f"{shown}: no such file", _nearby_hint(path), shown)
    if isinstance(error, PermissionError):
        hint = "Ask for permission to read it, or copy it to a folder of your own."
        return Unreadable(f"{shown} cannot be read: permission denied", hint, shown)
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Unreadable(f"{shown} cannot be read: {reason}", "Check the path.", shown)


def _inside(folder: Path) -> str:
    names = [name for name in _names(folder) if name.endswith(".py")]
    return f"Name a file in it: {', '.join(names[:5])}" if names else "Name a file."


def _nearby_hint(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder {path.parent} either."
    return did_you_mean(path.name, _names(path.parent)) or "Check the path."


def _names(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def data_folder() -> Path:
    """Where what a user has done is kept: ATTNLAB_HOME, or where the system keeps such data.

    Raises `RuntimeError` where this user has no home.
    """
    if named := os.environ.get("ATTNLAB_HOME"):
        return Path(named).absolute()
    for named in (os.environ.get(DATA_VARIABLE, ""), os.path.expanduser(DATA_FOLDER)):  # noqa: PTH111 - it does not raise
        folder = Path(named, "attnlab")
        if folder.is_absolute():  # an unexpanded "~" would become a folder of that name right here
            return folder
    raise RuntimeError("this user has no home folder")

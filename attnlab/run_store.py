"""What was graded and measured before: a long run that was ended goes on where it was.

One SQLite file for a run, one commit for each result, so that a killed process loses at most what
was under way. A result is kept under a key of all it depends on: the files of its base, the sources
of attnlab that judge, and the settings.
"""

import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import attnlab
from attnlab.errors import Refused
from attnlab.files import shown_path
from attnlab.records import from_json, to_json

R = TypeVar("R")
SHORT = 12  # digits of a digest that is shown
# Rooms that nothing imports while it judges: a new sentence there changes no verdict.
WITHOUT_A_SAY = ("lessons", "practice", "questions", "render", "cli.py", "doctor.py", "progress.py")
TABLE = """
CREATE TABLE IF NOT EXISTS results (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, value TEXT NOT NULL, at REAL NOT NULL)
"""

OLDEST = """
DELETE FROM results WHERE key IN (SELECT key FROM results ORDER BY at DESC LIMIT -1 OFFSET ?)
"""


class RunStore:
    """Results by key, for several threads; without a path nothing is kept."""

    def __init__(
        self, path: Path | None, flag: str = "--resume", alone: bool = False, most: int = 0
    ) -> None:
        """Open the file, or make it; raises `Refused` where that cannot be. `alone`: no other
        process may write to it meanwhile; `flag` names it on the command line; `most`: results
        that are kept, the newest ones, 0 for all."""
        self.path, self.flag, self.most = path, flag, most
        self._lock = threading.Lock()
        self._file: sqlite3.Connection | None = None
        self._held: int | None = None
        if path is not None:
            self._held = self._hold(path) if alone else None
            try:
                self._file = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
                self._file.execute("PRAGMA journal_mode = WAL")
                self._file.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing
                self._file.execute(TABLE)
            except sqlite3.Error as error:
                self.close()
                raise self._refusal(error) from error

    def get(self, key: str, kind: type[R]) -> R | None:
        """The result kept under `key`; None where there is none, or one of another version."""
        if self._file is None:
            return None
        with self._lock:
            found = self._file.execute("SELECT value FROM results WHERE key = ?", (key,)).fetchone()
        try:
            return from_json(kind, found[0]) if found else None
        except ValueError:
            return None

    def has(self, key: str) -> bool:
        """Whether anything is kept under `key`, by whatever version."""
        assert self._file is not None
        return bool(self._file.execute("SELECT 1 FROM results WHERE key = ?", (key,)).fetchone())

    def add(self, key: str, name: str, result: object) -> None:
        """Keep a record from now on; raises `Refused` where the file cannot be written."""
        if self._file is None:
            return
        row = (key, name, to_json(result), time.time())
        try:
            with self._lock:
                self._file.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?)", row)
                if self.most and self._file.execute(OLDEST, (self.most,)).rowcount > self.most:
                    self._file.execute("VACUUM")  # the file was much larger
        except sqlite3.Error as error:
            raise self._refusal(error) from error

    def remove(self, key: str) -> None:
        """Forget what is kept under `key`."""
        assert self._file is not None
        with self._lock:
            self._file.execute("DELETE FROM results WHERE key = ?", (key,))

    def all(self, kind: type[R]) -> Iterator[R]:
        """Every record of this kind, by name; what is of another kind is passed over."""
        assert self._file is not None
        for (value,) in self._file.execute("SELECT value FROM results ORDER BY name, key"):
            with suppress(ValueError):
                yield from_json(kind, value)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        if self._held is not None:  # after SQLite, whose own locks on the file it would end
            os.close(self._held)
            self._held = None

    def _hold(self, path: Path) -> int:
        """The descriptor of a lock that ends with this process, however that happens."""
        import fcntl

        try:
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._refusal(error) from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            hint = "wait for it, or name another file"
            raise Refused(
                f"{shown_path(path)} is in use by another attnlab", hint, self.flag
            ) from None
        return held

    def _refusal(self, error: sqlite3.Error | OSError) -> Refused:
        assert self.path is not None
        where = shown_path(self.path)
        if isinstance(error, sqlite3.DatabaseError) and "not a database" in str(error):
            return Refused(f"{where} is no file of results", "name another file", self.flag)
        why = error.strerror if isinstance(error, OSError) else error
        return Refused(f"{where} cannot be written: {why}", "name another file", self.flag)


def result_key(folder: str, *settings: object) -> str:
    """What a result about the base in `folder` depends on, as one short text."""
    return _digest([f"{folder_digest(folder)} {_judging_digest()} {settings}".encode()])


def folder_digest(folder: str) -> str:
    """Digits that change with any file of a base."""
    return _files_digest(Path(folder), "*")


@cache
def package_digest() -> str:
    """Digits that change with any source of attnlab."""
    return _files_digest(Path(attnlab.__file__).parent, "*.py")


@cache
def _judging_digest() -> str:
    """Digits that change with any source that a verdict can depend on."""
    return _files_digest(Path(attnlab.__file__).parent, "*.py", WITHOUT_A_SAY)


def _files_digest(folder: Path, pattern: str, left_out: tuple[str, ...] = ()) -> str:
    # Python writes its caches under names that pass: nothing in their folders is looked at.
    files = [
        Path(where, name)
        for where, _, names in os.walk(folder)
        if Path(where).name != "__pycache__"
        for name in names
    ]
    files = sorted(path for path in files if path.match(pattern))
    files = [path for path in files if path.relative_to(folder).parts[0] not in left_out]
    parts = (part for p in files for part in (str(p.relative_to(folder)).encode(), p.read_bytes()))
    return _digest(parts)


def _digest(parts: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(b"%d " % len(part) + part)
    return found.hexdigest()[:SHORT]

"""What a user has done so far, in one small SQLite file.

Practice must go on wherever it can: where the file cannot be kept, progress lives in memory for
this command and `Progress.warning` says so; a damaged file is set aside, never deleted.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

from attnlab.files import data_folder
from attnlab.records import FORMAT, ChallengeProgress, plain
from attnlab.records.practice import Event, KeptChallenge, KeptGrade, KeptProgress

T = TypeVar("T")
FILE = "progress.db"
WAIT = 5.0  # seconds to wait for another attnlab that is writing

# Statements by version, each of which lifts the schema by one.
_SCHEMA = re.split(r"-- version \d+\n", Path(__file__).with_suffix(".sql").read_text("utf-8"))[1:]
_EVENT = tuple(field.name for field in fields(Event))
_ADD_EVENT = f"INSERT INTO event ({', '.join(_EVENT)}) VALUES ({', '.join('?' * len(_EVENT))})"  # noqa: S608
_GRADE = tuple(field.name for field in fields(KeptGrade))
_CHALLENGE = tuple(field.name for field in fields(KeptChallenge))
_ADD_GRADE = f"INSERT INTO grade ({', '.join(_GRADE)}) VALUES ({', '.join('?' * len(_GRADE))})"  # noqa: S608
_GRADES = f"SELECT {', '.join(_GRADE)} FROM grade ORDER BY id"  # noqa: S608
_CHALLENGES = f"SELECT {', '.join(_CHALLENGE)} FROM challenge ORDER BY slug"  # noqa: S608
_EVENTS = f"SELECT {', '.join(_EVENT)} FROM event ORDER BY id"  # noqa: S608
_ALL_PROGRESS = """
    SELECT slug, max(started), max(hints), max(revealed), max(solution_seen), max(peeked),
           sum(tries), max(best), max(solved)
    FROM (
        SELECT slug, started, hints, revealed, solution_seen, peeked,
               0 AS tries, 0.0 AS best, 0 AS solved
        FROM challenge
        UNION ALL
        SELECT slug, 0, 0, 0, 0, 0, 1, score, outcome = 'passed' FROM grade
    )
    GROUP BY slug
"""


class _Damaged(Exception):
    """The file is there and is not what attnlab wrote."""


class _Newer(Exception):
    """The file was written by a later attnlab."""


class Progress:
    """Progress by slug. Every method is one transaction, so two attnlabs may run at once."""

    def __init__(self, db: sqlite3.Connection, path: Path | None, warning: str = "") -> None:
        self._db = db
        self.path = path  # None: in memory
        self.warning = warning

    @classmethod
    def open(cls, folder: Path | None = None) -> Progress:
        """Progress kept in `folder`, or in ATTNLAB_HOME, or where the system keeps such data."""
        try:
            home = folder or data_folder()
            home.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError) as error:
            return cls(_memory(), None, _not_saved(_why(error)))
        path = home / FILE
        try:
            return cls(_connect(path), path)
        except _Damaged as error:
            return _set_aside(path, str(error))
        except (OSError, sqlite3.Error, _Newer) as error:
            return cls(_memory(path), None, _not_saved(f"{path}: {_why(error)}"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def challenge_progress(self, slug: str) -> ChallengeProgress:
        return self.all_progress().get(slug, ChallengeProgress())

    def all_progress(self) -> dict[str, ChallengeProgress]:
        """The progress of every challenge that was ever touched, by slug."""
        rows = self._do(lambda db: db.execute(_ALL_PROGRESS).fetchall(), "BEGIN")
        return {row[0]: _challenge_progress(*row[1:]) for row in rows}

    def mark_started(self, slug: str) -> None:
        self._do(lambda db: _mark(db, slug, "started"))

    def mark_revealed(self, slug: str) -> None:
        self._do(lambda db: _mark(db, slug, "revealed"))

    def mark_solution_seen(self, slug: str) -> None:
        """The solution was shown; before the challenge was solved that is remembered apart."""
        solved = "SELECT 1 FROM grade WHERE slug = ? AND outcome = 'passed'"

        def mark(db: sqlite3.Connection) -> None:
            _mark(db, slug, "solution_seen")
            if db.execute(solved, (slug,)).fetchone() is None:
                _mark(db, slug, "peeked")

        self._do(mark)
        self.add_event(Event(kind="solution", base=slug))

    def add_hint(self, slug: str, event: Event | None = None) -> int:
        """Count one more hint; returns how many hints were shown."""

        def count(db: sqlite3.Connection) -> int:
            _mark(db, slug, "hints", "hints + 1")
            row = db.execute("SELECT hints FROM challenge WHERE slug = ?", (slug,)).fetchone()
            return int(row[0])

        shown = self._do(count)
        self.add_event(event or Event(kind="hint", base=slug, hints=shown))
        return shown

    def add_grade(
        self, slug: str, outcome: str, score: float, file: str, event: Event | None = None
    ) -> None:
        """Keep a grade, and the event of it where the caller knows more."""
        name = os.fsencode(file).decode("utf-8", "backslashreplace")  # a name may be any bytes
        row = (slug, outcome, score, name)
        insert = "INSERT INTO grade (slug, outcome, score, file) VALUES (?, ?, ?, ?)"
        self._do(lambda db: db.execute(insert, row))
        self.add_event(event or Event(kind="grade", base=slug, outcome=outcome, text=name))

    def add_event(self, event: Event) -> None:
        """Note what was done; one without a time happens now."""
        known = plain(replace(event, at=event.at or time.time()))
        row = [known[name] for name in _EVENT]
        self._do(lambda db: db.execute(_ADD_EVENT, row))

    def events(self) -> list[Event]:
        """Everything that was done, the first thing first."""
        rows = self._do(lambda db: db.execute(_EVENTS).fetchall(), "BEGIN")
        return [Event(**dict(zip(_EVENT, row, strict=True))) for row in rows]

    def export(self) -> KeptProgress:
        """Everything that was done."""

        def read(db: sqlite3.Connection) -> list[list[tuple[Any, ...]]]:
            return [db.execute(query).fetchall() for query in (_GRADES, _CHALLENGES)]

        grades, challenges = self._do(read, "BEGIN")
        return KeptProgress(
            format=FORMAT,
            events=tuple(self.events()),
            grades=tuple(KeptGrade(**dict(zip(_GRADE, row, strict=True))) for row in grades),
            challenges=tuple(
                KeptChallenge(**dict(zip(_CHALLENGE, row, strict=True))) for row in challenges
            ),
        )

    def merge(self, kept: KeptProgress) -> int:
        """Add what was done elsewhere and is not known here; returns how many things that were.

        An interview of the other machine gets a number of its own.
        """
        known = self.export()
        numbers = _free_numbers(known.events, kept.events)
        moved = [replace(e, interview=numbers.get(e.interview, e.interview)) for e in kept.events]
        events = [e for e, old in zip(moved, kept.events, strict=True) if old not in known.events]
        grades = [grade for grade in kept.grades if grade not in known.grades]
        rows = [tuple(plain(event)[name] for name in _EVENT) for event in events]

        def add(db: sqlite3.Connection) -> None:
            db.executemany(_ADD_EVENT, rows)
            db.executemany(_ADD_GRADE, [tuple(plain(g)[name] for name in _GRADE) for g in grades])
            for challenge in kept.challenges:
                values = plain(challenge)
                for column in _CHALLENGE[1:]:
                    _mark(db, challenge.slug, column, f"max({column}, {int(values[column])})")

        self._do(add)
        return len(events) + len(grades)

    def _do(self, act: Callable[[sqlite3.Connection], T], begin: str = "BEGIN IMMEDIATE") -> T:
        """`act` as one transaction; in memory from now on where the file refuses it."""
        try:
            with _transaction(self._db, begin):
                return act(self._db)
        except sqlite3.Error as error:
            if self.path is None:
                raise
            self.warning = _not_saved(f"{self.path}: {_why(error)}")
            self._db.close()
            self._db, self.path = _memory(self.path), None
        with _transaction(self._db):
            return act(self._db)


def _mark(db: sqlite3.Connection, slug: str, column: str, value: str = "1") -> None:
    """Sets one column of a challenge's row. Column and value are ours, never a user's."""
    db.execute("INSERT OR IGNORE INTO challenge (slug) VALUES (?)", (slug,))
    db.execute(f"UPDATE challenge SET {column} = {value} WHERE slug = ?", (slug,))  # noqa: S608


def _free_numbers(mine: Sequence[Event], theirs: Sequence[Event]) -> dict[int, int]:
    """Numbers for interviews that are not known here, by those that they have elsewhere."""
    known = {event.interview: event for event in reversed(mine) if event.interview}
    new = {event.interview: event for event in reversed(theirs) if event.interview}
    free = max(known, default=0) + 1
    moved = [n for n, event in sorted(new.items()) if n not in known or known[n] != event]
    return {number: free + place for place, number in enumerate(moved)}


def _challenge_progress(
    started: int, hints: int, revealed: int, seen: int, peeked: int, *grades: float
) -> ChallengeProgress:
    tries, best, solved = grades
    touched = started or hints or revealed or seen
    status: Literal["new", "started", "tried", "solved"] = "started" if touched else "new"
    if tries:
        status = "solved" if solved else "tried"
    return ChallengeProgress(
        status=status,
        hints=hints,
        revealed=bool(revealed),
        tries=int(tries),
        best=best,
        solution_seen=bool(seen),
        peeked=bool(peeked),
    )


# ---------------------------------------------------------------- the file


def _connect(path: Path) -> sqlite3.Connection:
    """The database at `path`, made or brought up to date."""
    db = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    try:
        _use_wal(db)
        db.execute("PRAGMA synchronous = NORMAL")
        _lift(db)
        _must_be_sound(db)
    except BaseException as error:
        db.close()
        # Locked, full or read-only is an OperationalError; the plain kind says "no database".
        if type(error) is sqlite3.DatabaseError:
            raise _Damaged(str(error)) from None
        raise
    return db


def _use_wal(db: sqlite3.Connection) -> None:
    """Switching a fresh file to WAL ignores the connection's timeout, so the wait is here."""
    deadline = time.monotonic() + WAIT
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _lift(db: sqlite3.Connection) -> None:
    """Runs the scripts that this file has not seen."""
    if _version(db) == len(_SCHEMA):
        return
    with _transaction(db):
        version = _version(db)  # again: another attnlab may have been faster
        if version > len(_SCHEMA):
            raise _Newer("a newer attnlab wrote this file")
        for script in _SCHEMA[version:]:
            for statement in filter(str.strip, script.split(";")):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(_SCHEMA)}")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _must_be_sound(db: sqlite3.Connection) -> None:
    said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        raise _Damaged(said)
    try:
        db.execute(_ALL_PROGRESS).fetchone()
    except sqlite3.OperationalError as error:
        if "no such" not in str(error):
            raise
        raise _Damaged(str(error)) from None


@contextmanager
def _transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """IMMEDIATE takes the write lock first: what is read inside still holds when it is written."""
    db.execute(begin)
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _memory(path: Path | None = None) -> sqlite3.Connection:
    """A database in memory, with a copy of what can still be read at `path`."""
    if path is not None and path.is_file():
        with suppress(sqlite3.Error, _Damaged, _Newer):
            return _copied(path)
    db = sqlite3.connect(":memory:", isolation_level=None)
    _lift(db)
    return db


def _copied(path: Path) -> sqlite3.Connection:
    # immutable: a read-only folder has no room for the lock files that WAL needs
    source = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
    db = sqlite3.connect(":memory:", isolation_level=None)
    try:
        source.backup(db)
        _lift(db)
        _must_be_sound(db)
    except BaseException:
        db.close()
        raise
    finally:
        source.close()
    return db


def _set_aside(path: Path, why: str) -> Progress:
    """Moves a damaged file to the first free `progress.broken-N.db` and starts afresh."""
    try:
        kept = _free_name(path)
        path.rename(kept)
        for tail in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                path.with_name(path.name + tail).rename(kept.with_name(kept.name + tail))
        db = _connect(path)
    except (OSError, sqlite3.Error, _Damaged, _Newer) as error:
        return Progress(_memory(), None, _not_saved(f"{path}: {_why(error)}"))
    warning = f"progress starts afresh: {path} was damaged ({why}); it is kept as {kept.name}"
    return Progress(db, path, warning)


def _free_name(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"{path.stem}.broken-{number}.db")).exists():
        number += 1
    return kept


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _not_saved(why: str) -> str:
    return f"progress is not saved: {why}; set ATTNLAB_HOME to a folder that can be written"

"""Find what a class handed in: a folder with a file or folder for each person, or a manifest."""

import csv
import hashlib
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from attnlab.catalogue.round_mark import MARK
from attnlab.errors import AttnlabError, Refused
from attnlab.files import read_bytes, shown_path
from attnlab.records.batch import Submission
from attnlab.run_store import SHORT
from attnlab.suggest import did_you_mean
from attnlab.target.source import LARGEST

COLUMNS = ("name", "file")
LARGEST_MANIFEST = 16 << 20
SKIPPED = ("__pycache__", "__MACOSX")
EXAMPLE = "as in the lines `name,file` and `alice,alice/attention.py`"


def find_submissions(where: str, file: str, round_: bool) -> list[Submission]:
    """Those of a folder or a manifest, by name. `file` is what a challenge's file is called;
    submissions to a round are folders. Raises `Refused` where nothing can be graded."""
    path = Path(where)
    if path.is_dir():
        found = list(_in_folder(path, file, round_))
        kind = "folder" if round_ else "file or folder"
        if not found:
            raise Refused(f"{where} holds no submission", f"one {kind} for each person", where)
    elif path.suffix.lower() == ".csv":
        found = list(_in_manifest(path, "" if round_ else file))
    else:
        near = os.listdir(path.parent) if path.parent.is_dir() else []  # noqa: PTH208 - names alone
        hint = did_you_mean(path.name, near) or "name a folder of submissions, or a .csv file"
        raise Refused(f"{where} is neither a folder nor a .csv file", hint, where)
    return sorted(found, key=lambda one: one.name)


def find_others(where: str, round_: bool) -> list[str]:
    """What stands beside the submissions of a folder and is none; hidden files are not named."""
    path = Path(where)
    entries = os.scandir(path) if path.is_dir() else ()
    names = [entry.name for entry in entries if not _is_submission(entry, round_)]
    return sorted(printable(n) for n in names if not n.startswith(".") and n not in SKIPPED)


def _is_submission(entry: os.DirEntry[str], round_: bool) -> bool:
    if entry.name.startswith(".") or entry.name in SKIPPED:
        return False
    return entry.is_dir() or (not round_ and entry.name.endswith((".py", ".ipynb")))


def digest_submission(submission: Submission, files: Sequence[str]) -> str:
    """Digits that change with what was handed in; `files` are those of a round."""
    folder = Path(submission.path)
    paths = [folder / name for name in (*files, MARK)] if files else [folder]
    if submission.problem:  # what a link leads to is not read
        paths = []
    found = hashlib.sha256(submission.problem.encode())
    for path in paths:
        try:
            content = read_bytes(path, path.name, LARGEST)
        except AttnlabError as error:
            content = error.message.encode("utf-8", "replace")
        found.update(b"%d " % len(content) + content)
    return found.hexdigest()[:SHORT]


def printable(name: str) -> str:
    """A name that may be any bytes, on one line and harmless to a terminal."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _in_folder(folder: Path, file: str, round_: bool) -> Iterator[Submission]:
    taken: dict[str, str] = {}
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if not _is_submission(entry, round_):
            continue
        name = printable(entry.name if entry.is_dir() else entry.name.rpartition(".")[0])
        if name in taken:
            raise Refused(
                f"{shown_path(folder)} holds two submissions of {name}: "
                f"{printable(taken[name])} and {printable(entry.name)}",
                "rename one of them, or say in a manifest whose it is",
            )
        taken[name] = entry.name
        yield _submission(Path(entry.path), name, "" if round_ else file, folder)


def _submission(path: Path, name: str, file: str, base: Path) -> Submission:
    """Somebody's file, or the one `file` of their folder; a link below `base` is not followed."""
    if problem := link_problem(path, base):
        return Submission(name=name, path=str(path), problem=problem)
    if file and path.is_dir():
        return _file_in(path, name, file)
    return Submission(name=name, path=str(path))


def link_problem(path: Path, base: Path) -> str:
    """Why a path is not graded: a link could show what lies elsewhere, or another's work."""
    for part in (path, *path.parents):
        if part == base:
            break
        if part.is_symlink():
            inside = Path(os.path.realpath(part)).is_relative_to(os.path.realpath(base))
            place = "another file in the folder" if inside else "a place outside the folder"
            return f"{printable(part.name)} is a link to {place}; it was not followed"
    return ""


def _file_in(folder: Path, name: str, file: str) -> Submission:
    """The one file of somebody's folder that is meant."""
    try:
        known = sorted(p for p in folder.iterdir() if p.suffix == ".py" and p.name[0] != ".")
    except OSError as error:
        return Submission(name=name, path=str(folder), problem=f"{name}/: {error.strerror}")
    named = [path for path in known if path.name == file] or known
    if len(named) == 1:
        return Submission(name=name, path=str(named[0]), problem=link_problem(named[0], folder))
    names = ", ".join(printable(path.name) for path in named[:4])
    problem = f"{name}/ holds {len(named)} Python files ({names}): none is called {file}"
    return Submission(
        name=name, path=str(folder), problem=problem if named else f"{name}/ holds no Python file"
    )


def _in_manifest(path: Path, wanted: str) -> Iterator[Submission]:
    shown = shown_path(path)
    try:
        text = read_bytes(path, shown, LARGEST_MANIFEST).decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise Refused(f"{shown} is no CSV file in UTF-8: {error}", EXAMPLE, shown) from None
    head = [word.strip().lower() for word in rows[0]] if rows else []
    if missing := [word for word in COLUMNS if word not in head]:
        has = f"it has {', '.join(map(printable, head[:6]))}" if head else "it is empty"
        raise Refused(f"{shown} has no column {missing[0]}: {has}", EXAMPLE, shown)
    taken: dict[str, int] = {}
    for number, row in enumerate(rows[1:], 2):
        if not any(cell.strip() for cell in row):
            continue
        cells = dict(zip(head, (cell.strip() for cell in row), strict=False))
        name, file = (printable(cells.get(column, "")) for column in COLUMNS)
        where = f"{shown}, row {number}"
        if not name or not file:
            raise Refused(f"{where}: the {'file' if name else 'name'} is empty", EXAMPLE, shown)
        if name in taken:
            hint = "keep the row of what is to be graded"
            raise Refused(f"{where}: {name} stands in row {taken[name]} too", hint, shown)
        taken[name] = number
        yield _submission(path.parent / cells["file"], name, wanted, path.parent)
    if not taken:
        raise Refused(f"{shown} names no submission", EXAMPLE, shown)

"""Rules of the file system: a candidate opens what Python and its packages are made of, no more.

Landlock answers EACCES to what no rule allows: reading a file of the user's or an answer of ours,
writing, removing or renaming one, using a TCP port. The rules are made once, by the process that
forks; a child enters them by one call, for good, with all that it starts.
"""

from __future__ import annotations

import ctypes
import os
import re
import site
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

import attnlab
from attnlab.worker.sandbox.libc import check_result, libc

# The same numbers on every machine: they are newer than the tables that differ.
CREATE, ADD, ENTER = 444, 445, 446
ASK = 1  # of `CREATE`: makes no rules, but tells what the kernel knows of them
BENEATH = 1  # the kind of rule that speaks of a path and all below it

EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
OF_A_FILE = EXECUTE | WRITE | READ  # the others are of folders
FIRST = (1 << 13) - 1  # what every kernel that knows of rules can refuse
LATER = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # version: to link elsewhere, to cut short, ioctl
PORTS, SCOPES = 4, 6  # versions: TCP ports; abstract sockets and signals of those outside
TWO = 0b11  # both of them

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/opt", "/nix", "/proc", "/sys")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ANSWERS = ("references", "challenges", "lessons")  # of the package: what is graded against
Allowed = Literal["read", "list"]


class _Handled(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("ports", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """What the kernel knows of it; raises `OSError` where that is nothing."""
    return check_result(libc().syscall(CREATE, None, ctypes.c_size_t(0), ASK))


@cache
def rules() -> int:
    """The file descriptor of the rules, in which the folder that this process is in is its own."""
    known = version()
    files = FIRST | sum(bit for since, bit in LATER.items() if known >= since)
    handled = _Handled(files, TWO * (known >= PORTS), TWO * (known >= SCOPES))
    size = ctypes.c_size_t(ctypes.sizeof(handled))
    ruleset = check_result(libc().syscall(CREATE, ctypes.byref(handled), size, 0))
    package = Path(attnlab.__file__).resolve().parent
    for path, allowed in allowed_paths(_roots(package), _answers(package)):
        _allow(ruleset, path, LIST if allowed == "list" else EXECUTE | READ | LIST)
    for name in DEVICES:
        _allow(ruleset, Path(name), READ | WRITE)
    if Path.cwd() != Path("/"):  # its own folder, where it has one
        _allow(ruleset, Path.cwd(), files)  # a limit of another layer leaves every file there empty
    return ruleset


def enter() -> None:
    """For this thread and all it starts; raises `OSError` where the kernel will not."""
    check_result(libc().syscall(ENTER, rules(), 0))


def allowed_paths(
    roots: Iterable[Path], answers: frozenset[Path]
) -> Iterator[tuple[Path, Allowed]]:
    """What to allow: roots as they are, but one that holds an answer entry by entry. Whoever
    imports has to list the folders down to it. Links count as what they lead to."""
    above = {up for answer in answers for up in answer.parents}
    todo, seen = [root.resolve() for root in roots], set[Path]()
    while todo:
        path = todo.pop()
        if path in seen or path in answers or not answers.isdisjoint(path.parents):
            continue
        seen.add(path)
        if path not in above:
            yield path, "read"
            continue
        yield path, "list"
        with suppress(OSError):
            found = (entry.resolve() for entry in path.iterdir())
            todo += [entry for entry in found if not path.is_relative_to(entry)]


def _roots(package: Path) -> list[Path]:
    """Where Python, its packages and the libraries of the system lie; none within another."""
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, *SYSTEM, *_library_folders()]
    paths += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    found = {Path(p).resolve() for p in paths if Path(p).is_absolute()} | {package}
    if package.parent not in _installed():
        found.discard(package.parent)  # a checkout: its own packages are one of many things there
    return [p for p in sorted(found) if p.exists() and not any(up in found for up in p.parents)]


def _answers(package: Path) -> frozenset[Path]:
    """Wherever they lie: in the package, beside it in a checkout, and where one that is installed
    for editing leaves copies of the challenges; and the user's own catalogue."""
    places = {package, *(at / package.name for at in _installed())}
    places |= set() if package.parent in _installed() else {package.parent}
    own = os.environ.get("ATTNLAB_CATALOGUE", "").split(os.pathsep)
    found = {at / name for at in places for name in ANSWERS}
    return frozenset(found | {Path(path).resolve() for path in own if path})


def _installed() -> list[Path]:
    """Folders of installed packages."""
    return [Path(p).resolve() for p in site.getsitepackages()]


def _library_folders() -> list[str]:
    """Folders of the libraries that are loaded, wherever they were found."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    libraries = {m[0] for line in lines if (m := re.search(r"/.+\.so\b.*", line))}
    return [str(Path(library).parent) for library in libraries]


def _allow(ruleset: int, path: Path, allowed: int) -> None:
    """One rule; none where the path is not there, or not to be seen."""
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        rule = _Beneath(allowed if path.is_dir() else allowed & OF_A_FILE, parent)
        if rule.allowed:
            check_result(libc().syscall(ADD, ruleset, BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(parent)

"""File system rules: a candidate opens only the files of Python and its packages.

Landlock answers EACCES to what no rule allows: reading the user's files, attnlab's answers or
what the system tells of other processes; writing, removing or renaming files; using a TCP port. The
process that forks creates the rules once. A child adds its own files in /proc and enters them; they
hold for ever, and for all processes that it starts.
"""

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
ASK = 1  # flag of `CREATE`: return the version that the kernel knows
BENEATH = 1  # a rule for a path and all below it

EXECUTE, WRITE, READ, LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
OF_A_FILE = EXECUTE | WRITE | READ  # the other rights are those of folders
FIRST = (1 << 13) - 1  # the rights of version 1
LATER = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}  # by version: link to other folders, truncate, ioctl
PORTS, SCOPES = 4, 6  # versions: TCP ports; abstract sockets and signals to other processes
TWO = 0b11  # both rights of such a kind

SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/opt", "/nix")
# Of /etc what the loader, the clock and the names of users need; of /proc and /sys what says how
# many cores and how much memory there are.
CONFIGURATION = """
/etc/alternatives /etc/group /etc/ld.so.cache /etc/ld.so.conf /etc/ld.so.conf.d /etc/localtime
/etc/mime.types /etc/nsswitch.conf /etc/os-release /etc/passwd /etc/python3 /etc/python3.11
/etc/python3.12 /etc/python3.13 /etc/ssl/certs /etc/timezone /proc/cpuinfo /proc/filesystems
/proc/meminfo /proc/stat /proc/sys/kernel /proc/sys/vm /proc/uptime /proc/version
/sys/devices/system /sys/fs/cgroup /sys/kernel/mm
""".split()  # noqa: SIM905
OWN = "auxv cgroup cmdline comm environ fd limits maps smaps smaps_rollup stat statm status".split()  # noqa: SIM905
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
ANSWERS = ("references", "challenges", "lessons")  # of the package: no candidate may read them
Allowed = Literal["read", "list"]


class _Handled(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("ports", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version of Landlock in the kernel; raises `OSError` where there is none."""
    return check_result(libc().syscall(CREATE, None, ctypes.c_size_t(0), ASK))


@cache
def rules() -> int:
    """The file descriptor of the rules. Candidates may write in the current folder of this
    process, unless that is /."""
    files = _files(version())
    handled = _Handled(files, TWO * (version() >= PORTS), TWO * (version() >= SCOPES))
    size = ctypes.c_size_t(ctypes.sizeof(handled))
    ruleset = check_result(libc().syscall(CREATE, ctypes.byref(handled), size, 0))
    package = Path(attnlab.__file__).resolve().parent
    for path, allowed in allowed_paths(_roots(package), _answers(package)):
        _allow(ruleset, path, LIST if allowed == "list" else EXECUTE | READ | LIST)
    for name in CONFIGURATION:
        _allow(ruleset, Path(name), EXECUTE | READ | LIST)
    for name in DEVICES:
        _allow(ruleset, Path(name), READ | WRITE)
    if Path.cwd() != Path("/"):
        _allow(ruleset, Path.cwd(), files)  # but another layer leaves files empty
    return ruleset


def enter() -> None:
    """Apply the rules to this thread and all it starts; raises `OSError` if the kernel refuses.

    Of /proc it keeps what is its own. The rules are one object for all who were forked, so later
    ones may read that, too, while it lives: there is nothing in it that they do not know."""
    for name in OWN:
        _allow(rules(), Path("/proc/self", name), READ | LIST)
    check_result(libc().syscall(ENTER, rules(), 0))


def _files(known: int) -> int:
    """All rights that a kernel of this version knows of files."""
    return FIRST | sum(bit for since, bit in LATER.items() if known >= since)


def allowed_paths(
    roots: Iterable[Path], answers: frozenset[Path]
) -> Iterator[tuple[Path, Allowed]]:
    """The paths to allow: each root, or its entries where it contains an answer. Imports must also
    list the folders above. Links are resolved."""
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
    """The folders of Python, its packages and the system libraries, none within another."""
    paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path, *SYSTEM, *_library_folders()]
    paths += os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep)
    found = {Path(p).resolve() for p in paths if Path(p).is_absolute()} | {package}
    if package.parent not in _installed():
        found.discard(package.parent)  # a checkout, which holds other files, too
    return [p for p in sorted(found) if p.exists() and not any(up in found for up in p.parents)]


def _answers(package: Path) -> frozenset[Path]:
    """All places that may hold answers: the package, the checkout around it, installed copies of
    the challenges, and the user's own catalogue."""
    places = {package, *(at / package.name for at in _installed())}
    places |= set() if package.parent in _installed() else {package.parent}
    own = os.environ.get("ATTNLAB_CATALOGUE", "").split(os.pathsep)
    found = {at / name for at in places for name in ANSWERS}
    return frozenset(found | {Path(path).resolve() for path in own if path})


def _installed() -> list[Path]:
    """The folders of installed packages."""
    return [Path(p).resolve() for p in site.getsitepackages()]


def _library_folders() -> list[str]:
    """The folders of the shared libraries that this process has loaded."""
    maps = Path("/proc/self/maps")
    lines = maps.read_text().splitlines() if maps.exists() else []
    libraries = {m[0] for line in lines if (m := re.search(r"/.+\.so\b.*", line))}
    return [str(Path(library).parent) for library in libraries]


def _allow(ruleset: int, path: Path, allowed: int) -> None:
    """Add one rule; none for a path that does not exist or cannot be opened."""
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

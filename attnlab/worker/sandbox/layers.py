"""The layers that isolate a candidate's process: one function each, applied in order.

A layer holds, or raises why it cannot; `doctor` and every report name both kinds.
"""

import os
import resource
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from attnlab.records import Limits
from attnlab.worker.sandbox import landlock, seccomp
from attnlab.worker.sandbox.libc import check_result, libc

CAPABILITY_VERSION, CAPABILITY_BYTES = 0x20080522, 24  # of three sets of 64 bits
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38


class Missing(Exception):
    """The machine does not support the layer; the message says why."""


def own_session(_limits: Limits) -> None:
    """A process group of its own, so that all of it can be ended at once."""
    os.setsid()


def dies_with_parent(_limits: Limits) -> None:
    """The kernel ends it when the worker ends, however that happens."""
    end_with_parent(signal.SIGKILL)


def no_new_privileges(_limits: Limits) -> None:
    """No set-uid program can give it more rights."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def no_capabilities(_limits: Limits) -> None:
    """Root has no more rights than anybody: it cannot read others' files, mount, or trace."""
    if sys.platform != "linux":
        raise Missing("only Linux has it")
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    check_result(libc().capset(header, bytes(CAPABILITY_BYTES)))


def memory(limits: Limits) -> None:
    """Limit the address space to what the worker holds already, plus the job's allowance."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        raise Missing("this system does not tell how much memory a process holds")
    held = int(statm.read_text().split()[0]) * resource.getpagesize()
    _limit(resource.RLIMIT_AS, held + limits.memory)


def cpu_time(limits: Limits) -> None:
    """Limit the CPU time to a little more than the time that the judge waits.

    The hard limit is a second later: it sends SIGKILL, which does not say why."""
    seconds = int(limits.seconds) + 2
    _limit(resource.RLIMIT_CPU, seconds, seconds + 1)


def no_files(_limits: Limits) -> None:
    """No file can be written, no core dumped, and few can be open."""
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_NOFILE, 64)


def restrict_files(_limits: Limits) -> None:
    """It reads the files of Python and its packages, but neither the user's files nor the answers.
    It changes, removes and renames files only in a folder of its own."""
    if sys.platform != "linux":
        raise Missing("only Linux with Landlock has it")
    try:
        landlock.enter()
    except OSError as error:
        raise Missing(f"only Linux with Landlock has it ({error})") from error


def filter_calls(_limits: Limits) -> None:
    """It can neither end nor inspect other processes, the judge's or the user's. It opens no
    network connection and changes no file's permissions."""
    known = seccomp.calls()
    if sys.platform != "linux" or known is None:
        raise Missing("only Linux on x86-64 and ARM64 has it")
    seccomp.install(known)


CANDIDATE = {
    "own session": own_session,
    "dies with the worker": dies_with_parent,
    "no new privileges": no_new_privileges,
    "no capabilities": no_capabilities,
    "memory limit": memory,
    "CPU limit": cpu_time,
    "reads only Python's files": restrict_files,
    "writes no files": no_files,
    "no other process, no network": filter_calls,
}
OWN = {k: CANDIDATE[k] for k in ("own session", "dies with the worker", "memory limit")}
LAYERS: dict[bool, dict[str, Callable[[Limits], None]]] = {False: CANDIDATE, True: OWN}


def apply(limits: Limits, own: bool) -> tuple[list[str], list[str]]:
    """Apply the layers to this process: those that hold, and "name: why not" for the others."""
    holds, missing = [], []
    for name, layer in LAYERS[own].items():
        try:
            layer(limits)
            holds.append(name)
        except (Missing, OSError, ValueError) as error:
            missing.append(f"{name}: {error}")
    return holds, missing


def prepare() -> None:
    """Prepare, once in the process that forks candidates, what all of them use."""
    with suppress(OSError):  # each candidate says so for itself
        if sys.platform == "linux":
            landlock.rules()


def end_with_parent(number: int) -> None:
    """Send this process a signal when its parent ends, however that happens."""
    _prctl(PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Make this process the parent of those that a candidate leaves, so that it can end them."""
    if sys.platform == "linux":
        _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _limit(kind: int, soft: int, hard: int | None = None) -> None:
    hard = soft if hard is None else hard
    given = resource.getrlimit(kind)[1]
    if given != resource.RLIM_INFINITY:
        soft, hard = min(soft, given), min(hard, given)
    resource.setrlimit(kind, (soft, hard))


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        raise Missing("only Linux has it")
    check_result(libc().prctl(option, value, 0, 0, 0))

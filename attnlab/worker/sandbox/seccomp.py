"""A filter of system calls: a candidate can neither end nor inspect other processes.

The filter is a BPF program, which sees the number of a call and its arguments. It answers EPERM to
calls that concern other processes, sockets (local ones, too), shared memory and queues, the
permissions of files or the whole machine, and allows all others. Child processes have higher ids
than the candidate; the worker and all earlier processes have lower ones, which are refused. Ids can
wrap around, so the parent's is refused by its value.
"""

import ctypes
import os
import struct
import tomllib
from pathlib import Path
from typing import NamedTuple

from attnlab.worker.sandbox.libc import check_result, libc

PR_SET_SECCOMP, MODE_FILTER = 22, 2
LOAD, EQUAL, AT_LEAST, ANY_OF, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF instructions
ALLOW, REFUSE, UNKNOWN = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # with EPERM, with ENOSYS
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16  # offsets in the data of a filter; little-endian
NEGATIVE = 0x80000000  # ids of groups, and -1 for all processes
X32 = 0x40000000  # calls from here on are those of the x32 interface


class Calls(NamedTuple):
    """The kernel's number of an architecture, and there the numbers of the calls to filter."""

    machine: int
    to_one: list[int]  # the first argument is a process
    to_own: list[int]  # the same, and 0 means oneself
    clone: int  # its first argument are flags
    never: list[int]


CLONE3 = 435  # its flags are in memory, which a filter cannot read: C libraries then use clone
NAMESPACES = 0x7E020000  # flags of clone: a mount, cgroup, UTS, IPC, user, PID or network namespace
_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
KNOWN = {machine: Calls(**numbers) for machine, numbers in _TABLES.items()}


class _Program(ctypes.Structure):
    _fields_ = (("count", ctypes.c_ushort), ("steps", ctypes.c_void_p))


def calls() -> Calls | None:
    """The calls of this architecture, where they are known."""
    return KNOWN.get(os.uname().machine)


def filter_for(known: Calls, pid: int, parent: int) -> bytes:
    """The BPF program for a process with this id and parent id."""
    steps = [_step(LOAD, MACHINE), *_unless(EQUAL, known.machine, REFUSE), _step(LOAD, NUMBER)]
    steps += [_step(AT_LEAST, X32, 0, 1), _step(RETURN, REFUSE)]
    for number in known.never:
        steps += [_step(EQUAL, number, 0, 1), _step(RETURN, REFUSE)]
    steps += [_step(EQUAL, CLONE3, 0, 1), _step(RETURN, UNKNOWN)]
    inner = [_step(LOAD, FIRST_ARGUMENT), _step(ANY_OF, NAMESPACES, 0, 1)]
    inner += [_step(RETURN, REFUSE), _step(RETURN, ALLOW)]
    steps += [_step(EQUAL, known.clone, 0, len(inner)), *inner]
    for number in (*known.to_one, *known.to_own):
        inner = [_step(LOAD, FIRST_ARGUMENT)]
        if number in known.to_own:
            inner += [_step(EQUAL, 0, 0, 1), _step(RETURN, ALLOW)]
        inner += [_step(EQUAL, parent, 2, 0), _step(AT_LEAST, NEGATIVE, 1, 0)]
        inner += [_step(AT_LEAST, pid, 1, 0), _step(RETURN, REFUSE), _step(RETURN, ALLOW)]
        steps += [_step(EQUAL, number, 0, len(inner)), *inner]
    return b"".join([*steps, _step(RETURN, ALLOW)])


def install(known: Calls) -> None:
    """Filter this process and all it starts, for ever; raises `OSError` if the kernel refuses."""
    code = filter_for(known, os.getpid(), os.getppid())
    held = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.addressof(held))
    check_result(libc().prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.byref(program), 0, 0))


def _step(code: int, constant: int, holds: int = 0, fails: int = 0) -> bytes:
    """One instruction, and how many to skip if its comparison holds, or fails."""
    return struct.pack("<HBBI", code, holds, fails, constant)


def _unless(test: int, constant: int, verdict: int) -> list[bytes]:
    return [_step(test, constant, 1, 0), _step(RETURN, verdict)]

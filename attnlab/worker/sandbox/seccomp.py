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
    to_one: tuple[int, ...]  # the first argument is a process
    to_own: tuple[int, ...]  # the same, and 0 means oneself
    clone: int  # its first argument are flags
    never: tuple[int, ...]


CLONE3 = 435  # its flags are in memory, which a filter cannot read: C libraries then use clone
NAMESPACES = 0x7E020000  # flags of clone: a mount, cgroup, UTS, IPC, user, PID or network namespace
KNOWN = {
    "x86_64": Calls(
        machine=0xC000003E,
        to_one=(62, 200, 234, 129, 297),  # kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo
        to_own=(302, 203, 142, 144, 314),  # prlimit64, and sched_set* of CPUs, param, policy, attr
        clone=56,
        never=(
            *(101, 310, 311, 424, 438, 141),  # ptrace, process_vm_*, pidfd_*, setpriority
            *(90, 91, 268, 452, 92, 93, 94, 260),  # of files: their rights, their owner,
            *(132, 235, 261, 280, 188, 189, 190, 463, 197, 198, 199, 466),  # times and attributes
            *(425, 321, 175, 313, 176, 246, 169),  # io_uring, bpf, modules, kexec, reboot
            *(164, 227, 159, 305, 170, 171, 172, 173),  # the clock, names, ports
            *(41, 29, 30, 31, 67, 64, 65, 66, 220),  # sockets, memory and semaphores of all,
            *(68, 69, 70, 71, 240, 241, 248, 249, 250, 251),  # queues, keys; who comes first
            *(272, 308, 165, 166, 155, 161, 428, 429, 430, 431, 432, 433, 442),  # other namespaces,
            *(323, 303, 304, 298, 312, 163, 179, 167, 168, 133, 259),  # mounts, roots, page faults,
            *(153, 103, 305, 154, 440, 448, 447, 126),  # file handles, counters, devices
        ),
    ),
    "aarch64": Calls(
        machine=0xC00000B7,
        to_one=(129, 130, 131, 138, 240),
        to_own=(261, 122, 118, 119, 274),
        clone=220,
        never=(
            *(117, 270, 271, 424, 438, 140),
            *(52, 53, 452, 54, 55),
            *(88, 5, 6, 7, 463, 14, 15, 16, 466),
            *(425, 280, 105, 273, 106, 104, 142),
            *(170, 112, 171, 266, 161, 162),
            *(198, 194, 195, 196, 197, 190, 191, 192, 193),
            *(186, 187, 188, 189, 180, 181, 217, 218, 219, 30),
            *(97, 268, 40, 39, 41, 51, 428, 429, 430, 431, 432, 433, 442),
            *(282, 264, 265, 241, 272, 89, 60, 224, 225, 33),
            *(58, 116, 266, 440, 448, 447, 91),
        ),
    ),
}


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

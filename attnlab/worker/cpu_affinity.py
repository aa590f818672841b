"""One CPU for processes that take turns.

The judge waits while the candidate works and the other way round, so a second CPU makes nothing
faster. To wake a process on another one, where its memory is in no cache, costs more than a switch.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Self

from attnlab.worker.sandbox.libc import libc


class CpuPinning:
    """While it is entered, this process, its `mates` and those it is told to take stay on one CPU.

    On which is for the system to say anew each time. Does nothing where the system cannot.
    """

    def __init__(self, *mates: int) -> None:
        self.all = (0, *mates)
        self.allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        self.cpu = -1

    def __enter__(self) -> Self:
        self.cpu = _here() if len(self.allowed) > 1 else -1
        for pid in self.all:
            self.take(pid)
        return self

    def take(self, pid: int) -> None:
        self._set_affinity(pid, {self.cpu})

    def free(self, pid: int) -> None:
        """Wherever this process may run: what it was forked from may be on one CPU."""
        self._set_affinity(pid, self.allowed)

    def __exit__(self, *error: object) -> None:
        for pid in self.all:
            self.free(pid)
        self.cpu = -1

    def _set_affinity(self, pid: int, cpus: set[int]) -> None:
        if self.cpu >= 0:
            with suppress(OSError):  # it may have ended
                os.sched_setaffinity(pid, cpus)


def _here() -> int:
    """The number of the CPU that this runs on; -1 where the system does not tell."""
    return int(libc().sched_getcpu()) if hasattr(libc(), "sched_getcpu") else -1

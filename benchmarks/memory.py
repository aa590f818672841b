"""How much more memory one run of a line takes at its peak than one of another."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import re
from pathlib import Path

from tracers import Line

MMAP_THRESHOLD = -3  # of malloc.h
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def extra(lines: list[Line]) -> dict[str, float | None]:
    """Megabytes over the first line; None where the system does not tell the peak of a process."""
    peaks = {line.name: peak(line) for line in lines}
    usual = peaks[lines[0].name]
    return {
        name: None if found is None or usual is None else max(found - usual, 0.0)
        for name, found in peaks.items()
    }


def peak(line: Line) -> float | None:
    """Of a forked process, so that what a line leaves behind is in no other's figure."""
    if not CLEAR.exists() or not hasattr(os, "fork"):
        return None
    end, begin = os.pipe()
    child = os.fork()
    if not child:
        with contextlib.suppress(Exception):  # the parent learns nothing then
            os.write(begin, f"{grown(line):.3f}".encode())
        os._exit(0)
    os.close(begin)
    said = os.read(end, 64)
    os.close(end)
    os.waitpid(child, 0)
    return float(said) if said else None


def grown(line: Line) -> float:
    line.before()
    line.run()  # a new process has yet to read in the code that it runs
    gc.collect()
    # What earlier runs freed is given back, or this one would be served from it unseen; and blocks
    # are given back when they are freed, so that the peak is what is held and not what the C
    # library keeps for later, which differs from run to run by more than a trace takes.
    library = ctypes.CDLL(None)
    library.mallopt(MMAP_THRESHOLD, 1 << 16)
    library.malloc_trim(0)
    CLEAR.write_text("5")  # the peak starts again from what is resident now
    start = resident("VmRSS")
    kept = line.run()
    found = resident("VmHWM") - start
    del kept
    return found


def resident(field: str) -> float:
    match = re.search(rf"{field}:\s+(\d+) kB", STATUS.read_text())
    return int(match[1]) / 1000 if match else 0.0

"""Waits until files were saved. It asks for their state ten times a second.

Asking needs no library, costs a thousandth of a core, and sees what notifications miss: editors
that write a new file and rename it, network folders, files that vanish and come back.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

Stamp = tuple[tuple[str, int, int, int], ...]
QUIET = 0.06  # seconds without a change after which a save is complete: formatters write twice
LONGEST = 1.0  # seconds: who saves a hundred times a second sees a verdict all the same
MOST = 300  # files of one folder


class Files:
    """The files to wait for: those named, and with a folder all Python files in it."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)
        self.seen = self.stamp()

    def stamp(self) -> Stamp:
        """Name, inode, size and time of each that exists."""
        found = []
        for path in self.paths:
            inside = sorted(path.glob("*.py"))[:MOST] if path.is_dir() else [path]
            for file in inside:
                try:
                    state = file.stat()
                except OSError:  # gone, or between two names
                    continue
                found.append((str(file), state.st_ino, state.st_size, state.st_mtime_ns))
        return tuple(found)

    def changed(self, sleep: Callable[[float], object] = time.sleep) -> tuple[str, ...]:
        """The files that differ from those seen last, once they are quiet; () where none does."""
        before, now = self.seen, self.stamp()
        if now == before:
            return ()
        until = time.monotonic() + LONGEST
        while time.monotonic() < until:
            sleep(QUIET)
            later = self.stamp()
            if later == now:
                break
            now = later
        self.seen = now
        return tuple(
            dict.fromkeys(
                stamp[0] for stamp in (*now, *before) if (stamp in now) != (stamp in before)
            )
        )

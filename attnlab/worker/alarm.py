"""Ends code under study shortly before its time is up, where it is, so that the line is known."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

EARLY = 0.5  # seconds before the judge would end the process, which tells no line
SLACK = 0.02  # seconds by which clocks may disagree
AGAIN = 0.1  # seconds until it rings in what is asked next: the first answer may be no end of it


class Hung(BaseException):
    """The time is up. No `except Exception` of the code under study catches it."""


class Alarm:
    """What runs inside `on()` ends with `Hung` when it rings; 0 seconds never do. Who will not hear
    it is ended by the judge."""

    def __init__(self, seconds: float) -> None:
        self.awake = False
        wait = max(seconds - EARLY, seconds * 0.8)
        self.due = time.monotonic() + wait - SLACK
        if seconds and hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, wait, AGAIN)

    @contextmanager
    def on(self) -> Iterator[None]:
        self.awake = True
        try:
            yield
        finally:
            self.awake = False

    def _ring(self, *_: Any) -> None:
        if self.awake and time.monotonic() >= self.due:  # else it is not this one that rang
            self.awake = False  # what it does about it takes time, too
            raise Hung

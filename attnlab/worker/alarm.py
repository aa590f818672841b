"""Interrupts the candidate shortly before its time is up, so that its line is known."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

EARLY = 0.5  # seconds before the judge ends the process, which shows no line
SLACK = 0.02  # seconds by which clocks may disagree
REPEAT = 0.1  # seconds until it rings again: the code may go on after the first time


class Hung(BaseException):
    """The time is up. No `except Exception` of the code under study catches it."""


class Alarm:
    """Raises `Hung` in what runs inside `on()` when it rings; 0 seconds never ring. The judge ends
    a process that catches it."""

    def __init__(self, seconds: float) -> None:
        self.armed = False
        wait = max(seconds - EARLY, seconds * 0.8)
        self.due = time.monotonic() + wait - SLACK
        if seconds and hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, wait, REPEAT)

    @contextmanager
    def on(self) -> Iterator[None]:
        self.armed = True
        try:
            yield
        finally:
            self.armed = False

    def _ring(self, *_: Any) -> None:
        if self.armed and time.monotonic() >= self.due:  # else it is not this one that rang
            self.armed = False  # what it does about it takes time, too
            raise Hung

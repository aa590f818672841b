"""Single keys from a terminal, without Enter; a pipe has none."""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

SLOW = 10.0  # seconds without an answer after which one wants to know why
GLANCE = 0.1  # seconds


class Keyboard:
    """Keys while `listen()` is open; outside of it the terminal is as it was found."""

    def __init__(self) -> None:
        self.works = _is_terminal()
        self.pressed: list[str] = []  # and not yet obeyed

    @contextmanager
    def listen(self, go_on: Callable[[], None]) -> Iterator[None]:
        """Read keys as they are pressed, and show none of them. After Ctrl-Z and `fg` too, where
        `go_on` is called."""
        if not self.works:
            yield
            return
        import termios

        self.found = termios.tcgetattr(sys.stdin.fileno())

        def continued(*_: object) -> None:
            self._take()
            go_on()

        before = signal.signal(signal.SIGCONT, continued)
        try:
            self._take()
            yield
        finally:
            signal.signal(signal.SIGCONT, before)
            self._give_back()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Leave the terminal to another program, as it was found."""
        self._give_back()
        try:
            yield
        finally:
            self._take()

    def _take(self) -> None:
        if self.works:
            import tty

            tty.setcbreak(sys.stdin.fileno())

    def _give_back(self) -> None:
        if self.works:
            import termios

            with suppress(termios.error):  # the terminal has gone
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self.found)

    def wait(self, seconds: float) -> str:
        """The key that is pressed within so many seconds, or ""; raises `EOFError` at its end."""
        if self.works and not self.pressed:
            self._read(seconds)
        elif not self.works:
            time.sleep(seconds)
        return self.pressed.pop(0) if self.pressed else ""

    @contextmanager
    def attend(self, late: Callable[[], None]) -> Iterator[None]:
        """Keep the keys that are pressed meanwhile; `q` is as Ctrl-C. `late` is called once it
        takes long."""
        done = threading.Event()
        thread = threading.Thread(target=self._attend, args=(done, late), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _attend(self, done: threading.Event, late: Callable[[], None]) -> None:
        until = time.monotonic() + SLOW
        while not done.wait(GLANCE):
            if time.monotonic() > until:
                until = float("inf")
                late()
            try:
                if self.works:
                    self._read(0)
            except EOFError:
                self.pressed = ["q"]
            if "q" in self.pressed:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                return

    def _read(self, seconds: float) -> None:
        """Take what is pressed within so many seconds; of an arrow key only the escape."""
        if not select.select([sys.stdin], [], [], seconds)[0]:
            return
        pressed = os.read(sys.stdin.fileno(), 64).decode("utf-8", "replace")
        if not pressed:
            raise EOFError
        more = pressed[:1] if pressed.startswith("\x1b") else pressed
        self.pressed = list(dict.fromkeys([*self.pressed, *more]))  # a key held down is one


def _is_terminal() -> bool:
    try:
        import termios  # noqa: F401 - not everywhere

        return sys.stdin.isatty() and sys.stdout.isatty()
    except (ImportError, ValueError, AttributeError):
        return False

"""Single keys from a terminal, without Enter; a pipe has none."""

import os
import select
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Keyboard:
    """Keys while `listen()` is open; outside of it the terminal is as it was found."""

    def __init__(self) -> None:
        self.works = _is_terminal()

    @contextmanager
    def listen(self) -> Iterator[None]:
        """Read keys as they are pressed, and show none of them."""
        if not self.works:
            yield
            return
        import termios
        import tty

        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
        try:
            tty.setcbreak(fd)
            yield
        finally:
            with suppress(termios.error):  # the terminal has gone
                termios.tcsetattr(fd, termios.TCSADRAIN, before)

    def wait(self, seconds: float) -> str:
        """The key that is pressed within so many seconds, or ""; raises `EOFError` at its end."""
        if not self.works:
            time.sleep(seconds)
            return ""
        if not select.select([sys.stdin], [], [], seconds)[0]:
            return ""
        pressed = os.read(sys.stdin.fileno(), 64)
        if not pressed:
            raise EOFError
        return pressed.decode("utf-8", "replace")[:1]  # of an arrow key only the escape


def _is_terminal() -> bool:
    try:
        import termios  # noqa: F401 - not everywhere

        return sys.stdin.isatty() and sys.stdout.isatty()
    except (ImportError, ValueError, AttributeError):
        return False

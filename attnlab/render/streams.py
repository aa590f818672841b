"""Standard streams that never break a command: odd encodings and readers that have gone."""

import errno
import os
import sys
from typing import IO

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def prepare_streams() -> None:
    """A terminal that cannot show a character shows `?` instead of ending the command, and what
    cannot be read is no answer; what is closed swallows all."""
    for name in ("stdin", "stdout", "stderr"):
        if name != "stdin" and getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123
        reconfigure = getattr(getattr(sys, name), "reconfigure", None)
        if reconfigure:
            reconfigure(errors="replace")


def is_output_lost(error: Exception) -> bool:
    """Whether the error is one of printing, whose file or disk is full or has failed."""
    return isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None


def discard_output(stream: IO[str]) -> None:
    """Point a stream whose reader has gone at the null device, so that nothing fails later."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass  # not a real file: nothing is left to fail


def flush_streams() -> str:
    """Write what is still to be written; returns why some of it cannot be, or ""."""
    lost = ""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            discard_output(stream)
        except OSError as error:
            discard_output(stream)
            lost = error.strerror or str(error)
    return lost

"""stdout and stderr that never break a command: odd encodings and readers that have gone."""

import os
import sys
from typing import IO


def replace_unencodable() -> None:
    """A terminal that cannot show a character shows `?` instead of ending the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="replace")


def discard_output(stream: IO[str]) -> None:
    """Point a stream whose reader has gone at the null device, so that nothing fails later."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass  # not a real file: nothing is left to fail


def flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            discard_output(stream)

"""The process that runs a candidate: closes everything, locks itself in, then answers verbs.

What it says is raw tensors and rows of a trace. It holds no seed, no reference, no expected value
and no check, so there is nothing in it that a candidate could read or bend to its advantage.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import tempfile
from typing import Any

import torch

from attnlab.candidate.process_state import Surroundings
from attnlab.candidate.session import Session
from attnlab.records import Limits
from attnlab.worker.alarm import Alarm
from attnlab.worker.sandbox import layers
from attnlab.worker.sandbox.landlock import ANSWERS
from attnlab.worker.tensors import pack, unpack
from attnlab.worker.wire import receive, send

SOCKET = 3
# How this process ends by itself, unlike what a candidate is likely to say with os._exit.
MEMORY, BROKEN = 112, 113


def serve(
    sock: socket.socket, out: int, limits: Limits, own: bool, before: Surroundings | None = None
) -> None:
    """Never returns. `out` takes the candidate's stdout and stderr."""
    mine = os.getpid()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # to the zygote it means that all is over
    try:
        holds, missing = layers.apply(limits, own)
        sock = _close_all_but(sock, out)
        if not own:
            sys.meta_path.insert(0, ImportBlocker())
        send(sock, pack({"isolation": holds, "missing": missing}))
        if not own:  # no file can be written, and what asks for a folder to write to must not fail
            tempfile.tempdir = os.curdir
        # A fork leaves torch's pool of threads to whoever uses it first; two at once find none.
        torch.set_num_threads(torch.get_num_threads())
        session = Session(before)
        alarm = Alarm(limits.seconds if limits.rings else 0.0)
        while True:
            request = unpack(receive(sock))
            with alarm.on():
                answer = session.ask(request["verb"], **request["args"])
            if os.getpid() != mine:  # the candidate forked: the twin has nothing to answer
                os._exit(0)
            _flush()
            send(sock, pack(answer))
    except EOFError:
        os._exit(0)
    except MemoryError:
        os._exit(MEMORY)
    finally:
        os._exit(BROKEN)


class ImportBlocker:
    """Refuses to import attnlab's answers, whether their files can be read or not."""

    names = tuple(f"attnlab.{name}" for name in ANSWERS)

    def find_spec(self, name: str, *_: object) -> None:
        if name.startswith(self.names):
            raise ImportError(f"{name} is what a file is graded against: it has to do without")


def _close_all_but(sock: socket.socket, out: int) -> socket.socket:
    """Standard input from nowhere, output to the judge, the socket at 3, nothing else open."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    low = {0: nothing, 1: out, 2: out, SOCKET: sock.fileno()}
    high = {to: fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for to, fd in low.items()}
    for to, fd in high.items():
        os.dup2(fd, to)
    os.closerange(SOCKET + 1, 4096)
    sock.detach()
    for name, fd, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        stream: Any = os.fdopen(fd, mode, errors="backslashreplace", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    return socket.socket(fileno=SOCKET)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:  # noqa: S112 - the candidate may have put anything there
            continue

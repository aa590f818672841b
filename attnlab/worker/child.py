"""The process that runs a candidate: it closes all files, enters the sandbox, then answers verbs.

Its answers are raw tensors and rows of a trace. It holds no seed, reference, expected value or
check, so a candidate finds nothing in it to read or to change.
"""

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
# Exit statuses of this process, which a candidate is unlikely to give to os._exit.
MEMORY, BROKEN = 112, 113


def serve(
    sock: socket.socket, out: int, limits: Limits, own: bool, before: Surroundings | None = None
) -> None:
    """Answer verbs until the judge closes `sock`; never returns. Stdout and stderr go to `out`."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # in the zygote it ends all processes
    try:
        holds, missing = layers.apply(limits, own)
        sock = _close_all_but(sock, out)
        if not own:
            sys.meta_path.insert(0, ImportBlocker())
        send(sock, pack({"isolation": holds, "missing": missing}))
        if not own:  # it cannot write, but asking for a temporary folder must not fail
            tempfile.tempdir = os.curdir
        # After a fork the first user starts torch's thread pool; two users at once find none.
        torch.set_num_threads(torch.get_num_threads())
        session = Session(before)
        _answer_requests(sock, session, Alarm(limits.seconds if limits.rings else 0.0))
    except MemoryError:
        os._exit(MEMORY)
    finally:
        os._exit(BROKEN)


def _answer_requests(sock: socket.socket, session: Session, alarm: Alarm) -> None:
    """Answer until the judge closes the socket; never returns."""
    mine = os.getpid()

    def reply(answer: dict[str, Any]) -> None:
        if os.getpid() != mine:  # the candidate forked: the copy must not answer
            os._exit(0)
        _flush()
        send(sock, pack(answer))

    def answer_on() -> None:
        try:
            while True:
                request = unpack(receive(sock))
                with alarm.on():
                    answer = session.ask(request["verb"], **request["args"])
                reply(answer)
        except EOFError:
            os._exit(0)

    def answer_now(answer: dict[str, Any]) -> None:
        try:
            reply(answer)
            answer_on()
        finally:
            os._exit(BROKEN)

    session.answer_now = answer_now
    answer_on()


class ImportBlocker:
    """Refuses to import attnlab's answers, whether their files can be read or not."""

    names = tuple(f"attnlab.{name}" for name in ANSWERS)

    def find_spec(self, name: str, *_: object) -> None:
        if name.startswith(self.names):
            raise ImportError(f"{name} is what a file is graded against: it has to do without")


def _close_all_but(sock: socket.socket, out: int) -> socket.socket:
    """Empty stdin; stdout and stderr go to `out`; the socket is 3; all other files are closed."""
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
        except BaseException:  # noqa: S112 - the candidate may have replaced them
            continue

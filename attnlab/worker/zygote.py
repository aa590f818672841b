"""The zygote: imports torch once, then forks the judge and a fresh child for every candidate.

It holds no reference, check, seed or answer: it forks the judge before any of them is loaded, so
a child inherits none. It runs torch on one thread, which makes forking safe: children of a process
that has used two threads hang.

Started by `cold_start.py` as a script, for one command; its arguments are the descriptor of the
socket to the command and the folder to work in. The zygotes of `server.py` are forked ready.
"""

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

if __name__ == "__main__":  # a checkout need not be installed; -I keeps everything else out
    sys.path[:] = [p for p in sys.path if Path(p).name != "worker"]
    sys.path.append(str(Path(__file__).parent.parent.parent))

import gc
import json
import select
import signal
import socket
import time

import torch

from attnlab.candidate.process_state import Surroundings
from attnlab.records import Limits
from attnlab.worker import child, prefork
from attnlab.worker.sandbox import layers
from attnlab.worker.scratch import remove_scratch
from attnlab.worker.wire import receive_line

PASSES = 1000  # in which strays are ended: enough for any chain, and a limit for fork bombs


def main() -> NoReturn:
    before = warm_up()
    layers.adopt_orphans()
    layers.prepare()
    front = socket.socket(fileno=int(sys.argv[1]))
    ours, judges = socket.socketpair()
    judge = os.fork()
    if judge == 0:
        ours.close()
        serve_as_judge(front, judges)
    judges.close()
    Zygote(front, ours, before, folder=sys.argv[2], alive={judge}).serve()


def warm_up() -> Surroundings:
    """Make this process ready to be forked; returns what belongs to it, before any candidate."""
    torch.set_num_threads(1)
    prefork.warm()
    before = Surroundings()
    gc.collect()
    gc.freeze()
    sys.dont_write_bytecode = True  # what candidates import leaves no files behind
    return before


def compile_once() -> None:
    """Let what this process imports be kept compiled, unless the user forbids that."""
    sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)


def serve_as_judge(front: socket.socket, zygote: socket.socket) -> NoReturn:
    """Be the judge of one command, until it closes its socket."""
    compile_once()
    from attnlab.worker.judge import serve

    try:
        serve(front, zygote)
    finally:
        os._exit(0)


class Zygote:
    """Forks and reaps when the judge requests it, until the judge or the command ends.

    `alive` are the processes that it must end: the judge, and children that were not reaped.
    """

    def __init__(
        self,
        front: socket.socket,
        control: socket.socket,
        before: Surroundings,
        folder: str = "",
        alive: set[int] | None = None,
    ) -> None:
        self.front = front  # never read here: it only tells when the command has gone
        self.control = control
        self.before = before  # any candidate ran; each child compares its process with it
        self.folder = folder
        self.alive = alive or set()

    def serve(self) -> NoReturn:
        signal.signal(signal.SIGTERM, lambda *_: self.end())
        wait = select.poll()
        wait.register(self.control, select.POLLIN)
        wait.register(self.front, getattr(select, "POLLRDHUP", 0))  # POLLHUP is always told
        while True:
            ready = [fd for fd, _ in wait.poll()]
            line = b"" if self.front.fileno() in ready else receive_line(self.control)
            if not line:
                self.end()
            self._answer(json.loads(line))

    def _answer(self, request: dict[str, Any]) -> None:
        if request["op"] == "fork":
            self._fork(request)
        elif request["op"] == "judge":
            self.alive.add(request["pid"])
        else:
            status = self._reap(request["pid"], request["grace"])
            self.control.sendall(json.dumps({"status": status}).encode() + b"\n")

    def end(self) -> NoReturn:
        for pid in self.alive:
            _kill(pid)
        self.alive.clear()  # now every child is a stray
        self._end_strays()
        remove_scratch(self.folder)
        os._exit(0)

    def _fork(self, request: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            self.front.close()
            child.serve(theirs, write, Limits(**request["limits"]), request["own"], self.before)
        self.alive.add(pid)
        theirs.close()
        os.close(write)
        fds = [ours.fileno(), read]
        socket.send_fds(self.control, [json.dumps({"pid": pid}).encode() + b"\n"], fds)
        ours.close()
        os.close(read)

    def _reap(self, pid: int, grace: float) -> int:
        """End a child and all it started; returns its wait status. It has `grace` seconds to end
        by itself."""
        deadline = time.monotonic() + grace
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done or time.monotonic() >= deadline:
                break
            time.sleep(0.005)
        _kill(pid)
        if not done:
            status = os.waitpid(pid, 0)[1]
        self.alive.discard(pid)
        self._end_strays()
        return status

    def _end_strays(self) -> None:
        """End processes that a candidate started in other sessions: they are children by now.

        When one ends, its own children become children of the zygote, hence several passes."""
        listing = Path(f"/proc/self/task/{os.getpid()}/children")
        for _ in range(PASSES if listing.exists() else 0):
            strays = set(map(int, listing.read_text().split())) - self.alive
            if not strays:
                return
            for pid in strays:
                _kill(pid)
                os.waitpid(pid, 0)


def _kill(pid: int) -> None:
    """Kill a process and, where it leads one, its group."""
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue


if __name__ == "__main__":
    main()

"""The zygote: imports torch once, then forks the judge and a fresh child for every candidate.

It holds no reference, check, seed or answer: it forks the judge before any of them is loaded, so
a child inherits none. It runs torch on one thread, which makes forking safe: children of a process
that has used two threads hang.

Started by `client.py` as a script, with the socket to the judge as the file descriptor in argv.
(A server that stays warm between commands would listen here and fork one judge per connection.)
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
import signal
import socket
import time

import torch

from attnlab.candidate.process_state import Surroundings
from attnlab.records import Limits
from attnlab.worker import child, prefork
from attnlab.worker.sandbox import layers
from attnlab.worker.wire import receive_line

# After so many children large pages pay off: they take 20 to 180 ms once, and save 2 ms a child.
LASTING = 32
PASSES = 1000  # in which strays are ended: enough for any chain, and a limit for fork bombs


def main() -> NoReturn:
    torch.set_num_threads(1)
    layers.adopt_orphans()
    layers.prepare()
    prefork.warm()
    before = Surroundings()
    gc.collect()
    gc.freeze()
    job = socket.socket(fileno=int(sys.argv[1]))
    ours, judges = socket.socketpair()
    judge = os.fork()
    if judge == 0:
        ours.close()
        _judge(job, judges)
    job.close()
    judges.close()
    zygote = Zygote(ours, judge, before)
    signal.signal(signal.SIGTERM, lambda *_: zygote.end())
    zygote.serve()


def _judge(job: socket.socket, zygote: socket.socket) -> NoReturn:
    from attnlab.worker.judge import serve

    try:
        serve(job, zygote)
    finally:
        os._exit(0)


class Zygote:
    """Forks and reaps when the judge requests it; `alive` are the processes that it must end."""

    def __init__(
        self, control: socket.socket, judge: int, before: Surroundings | None = None
    ) -> None:
        self.control = control
        self.before = before  # any candidate ran; each child compares its process with it
        self.alive = {judge}
        self.forks = 0

    def serve(self) -> NoReturn:
        """Answer requests until the judge ends."""
        while line := receive_line(self.control):
            request = json.loads(line)
            if request["op"] == "fork":
                self._fork(request)
            else:
                status = self._reap(request["pid"], request["grace"])
                self.control.sendall(json.dumps({"status": status}).encode() + b"\n")
        self.end()

    def end(self) -> NoReturn:
        for pid in self.alive:
            _kill(pid)
        self.alive.clear()  # now every child is a stray
        self._end_strays()
        os._exit(0)

    def _fork(self, request: dict[str, Any]) -> None:
        self.forks += 1
        if self.forks == LASTING:
            prefork.large_pages()
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
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

"""The warm judge: it imports torch once, and answers commands until nobody has asked for a while.

Three kinds of processes, none of which runs a candidate or holds more than it needs:

* the server holds torch and the child's code, as a zygote does. It accepts a command's connection
  and forks a zygote for it;
* the template holds all that judges: checks, references, the grader. It forks a judge for it;
* zygote and judge serve this one command as those of a cold start do, and end with it.

So what one command's candidate does, or what a judge learns, is gone with the next. Started by
`warm_start.py` as a script; its arguments are the descriptors of the listening socket and of the
lock that is held until it answers, the socket's path, the key and the idle time in seconds.
"""

import os
import sys
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

if __name__ == "__main__":  # a checkout need not be installed; -I keeps everything else out
    sys.path[:] = [p for p in sys.path if Path(p).name != "worker"]
    sys.path.append(str(Path(__file__).parent.parent.parent))

import gc
import importlib
import json
import pkgutil
import select
import signal
import socket
import subprocess
import time
from contextlib import suppress
from functools import cache, partial

from attnlab.candidate.process_state import Surroundings
from attnlab.worker.cold_start import isolated_python
from attnlab.worker.prefork import use_huge_pages
from attnlab.worker.sandbox import layers
from attnlab.worker.scratch import remove_left_scratches
from attnlab.worker.server_address import Address, hash_sources
from attnlab.worker.wire import receive, send
from attnlab.worker.zygote import Zygote, compile_once, serve_as_judge, warm_up

COMMANDS = 1000  # until it starts a successor: whatever leaks, leaks no more than this
ASKED = 3  # exit status of a process that only told the state
AT_ONCE = 64  # connections; more have to wait
HELLO = 5.0  # seconds in which a connection must say what it wants
GLANCE = 30.0  # seconds between looks at whether the socket is still there
JUDGING = ("checks", "grading", "mutation_testing", "probe", "references", "tracer")


def main() -> NoReturn:
    listening, lock, path, key, idle = sys.argv[1:]
    before = warm_up()
    use_huge_pages()  # before the template is forked, so that both share them
    template, theirs = socket.socketpair(type=socket.SOCK_DGRAM)
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        for fd in (int(listening), int(lock), ready):
            os.close(fd)
        template.close()
        _serve_judges(theirs, tell)
    theirs.close()
    os.close(tell)
    if not os.read(ready, 1) or hash_sources() != key:
        os._exit(1)  # the template has died, or the sources changed while they were read
    listener = socket.socket(fileno=int(listening))
    server = Server(listener, Path(path), key, float(idle), Template(pid, template), before)
    os.close(int(lock))
    remove_left_scratches()
    server.serve()


class Template(NamedTuple):
    """The process that forks judges, and the socket on which it is asked to."""

    pid: int
    sock: socket.socket


class Server:
    """Accepts connections and forks; it reads nothing that a command sends."""

    def __init__(
        self,
        listener: socket.socket,
        path: Path,
        key: str,
        idle: float,
        template: Template,
        before: Surroundings,
    ) -> None:
        self.listener, self.path, self.key, self.idle = listener, path, key, idle
        self.template, self.before = template, before
        self.inode = path.stat().st_ino
        self.started = self.used = time.monotonic()
        self.commands = 0
        self.alive: set[int] = set()
        self.leaving = False
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # it interrupts the wait

    def serve(self) -> NoReturn:
        """Accept until it is told to leave, is not used, or its socket is gone."""
        wake, waker = socket.socketpair()
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        wake.setblocking(False)
        while not self.leaving or self.alive:
            accepting = not self.leaving and len(self.alive) < AT_ONCE
            waiting = [wake, self.listener] if accepting else [wake]
            ready = select.select(waiting, [], [], min(GLANCE, self.idle / 2))[0]
            with suppress(BlockingIOError):
                wake.recv(4096)
            self._reap()
            if self.listener in ready:
                self._accept()
            elif not self.leaving:
                self._consider_leaving()
        self._end()

    def _accept(self) -> None:
        try:
            front = self.listener.accept()[0]
        except OSError:
            return
        try:
            pid = os.fork()
        except OSError:  # no process is left: the command starts cold, and says why
            front.close()
            return
        if pid == 0:
            self._serve_one(front)
        front.close()
        self.alive.add(pid)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                pid = 0
            if not pid:
                return
            self.alive.discard(pid)
            if pid == self.template.pid:  # without it there are no more judges
                self._leave()
            elif os.waitstatus_to_exitcode(status) != ASKED:
                self._count_command()

    def _count_command(self) -> None:
        self.used = time.monotonic()
        self.commands += 1
        if self.commands == COMMANDS:
            self._start_successor()

    def _consider_leaving(self) -> None:
        unused = time.monotonic() - self.used > self.idle and not self.alive
        try:
            replaced = self.path.stat().st_ino != self.inode
        except OSError:
            replaced = True
        if replaced:
            self.leaving = True
        elif unused:
            self._leave()

    def _stop(self, *_: Any) -> None:
        self._leave()

    def _leave(self) -> None:
        """Take no more commands, and end once those that are served have ended."""
        if not self.leaving:
            self.leaving = True
            with suppress(OSError):
                self.path.unlink()

    def _start_successor(self) -> None:
        """Hand the socket to a fresh server; commands wait in its queue meanwhile."""
        import fcntl

        lock = os.open(Address(self.path, self.key).lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        fds = (self.listener.fileno(), lock)
        arguments = [*map(str, fds), str(self.path), self.key, str(self.idle)]
        command = [*isolated_python(), __file__, *arguments]
        subprocess.Popen(command, pass_fds=fds, start_new_session=True)
        os.close(lock)
        self.leaving = True  # but the socket stays

    def _end(self) -> NoReturn:
        with suppress(ProcessLookupError):
            os.kill(self.template.pid, signal.SIGKILL)
        os._exit(0)

    # ------------------------------------------------------------ in the process of one command

    def _serve_one(self, front: socket.socket) -> NoReturn:
        """Say hello, and become the zygote of this command; never returns."""
        try:
            self._become_zygote(front)
        except (OSError, EOFError, ValueError, KeyError):
            os._exit(1)  # the command sees that nobody answers, and starts cold
        finally:
            os._exit(1)

    def _become_zygote(self, front: socket.socket) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        server = os.getppid()
        self.listener.close()
        os.setsid()
        with suppress(layers.Missing, OSError):
            layers.end_with_parent(signal.SIGTERM)
        front.settimeout(HELLO)
        wish = json.loads(receive(front))
        if wish["key"] != self.key:
            return
        if wish["do"] == "stop":
            os.kill(server, signal.SIGTERM)
        send(front, json.dumps(self._state(server)).encode())
        if wish["do"] != "serve":
            os._exit(ASKED)
        front.settimeout(None)
        folder = wish["folder"]
        os.environ["ATTNLAB_CATALOGUE"] = wish["catalogue"]
        os.chdir(folder or "/")
        layers.adopt_orphans()
        layers.prepare()
        ours, judges = socket.socketpair()
        fds = [front.fileno(), judges.fileno()]
        socket.send_fds(self.template.sock, [os.fsencode(folder or "/")], fds)
        judges.close()
        self.template.sock.close()
        Zygote(front, ours, self.before, folder).serve()

    def _state(self, server: int) -> dict[str, Any]:
        now = time.monotonic()
        return {
            "key": self.key,
            "installation": str(Path(__file__).parent.parent),
            "pid": server,
            "seconds": now - self.started,
            "commands": self.commands,
            "running": len(self.alive),
            "idle": self.idle,
            "unused": now - self.used,
            "memory": _memory(),
        }


def _memory() -> int:
    """Bytes of this process, which are those of the server; 0 where the system does not tell."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") if statm.exists() else 0


def _serve_judges(requests: socket.socket, tell: int) -> NoReturn:
    """Be the template: import all that judges, and fork a judge for every message, which is the
    folder to work in."""
    server = os.getppid()
    with suppress(layers.Missing, OSError):
        layers.end_with_parent(signal.SIGKILL)
    compile_once()
    importlib.import_module("attnlab.worker.judge")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for judges
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.write(tell, b"1")
    os.close(tell)
    requests.settimeout(GLANCE)
    while os.getppid() == server:
        with suppress(TimeoutError):
            folder, fds, _, _ = socket.recv_fds(requests, 1 << 16, 2)
            front, zygote = map(partial(socket.socket, socket.AF_UNIX, socket.SOCK_STREAM, 0), fds)
            if _fork_or_none() == 0:
                requests.close()
                _become_judge(front, zygote, folder)
            front.close()
            zygote.close()
            _import_all()
    os._exit(0)


@cache
def _import_all() -> None:
    """Import what judges import when they need it; the first command does not wait for that."""
    for room in JUDGING:
        package = importlib.import_module(f"attnlab.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def _fork_or_none() -> int | None:
    try:
        return os.fork()
    except OSError:  # the zygote sees that its judge has gone
        return None


def _become_judge(front: socket.socket, zygote: socket.socket, folder: bytes) -> NoReturn:
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()  # ended together with what it forks
        os.chdir(folder)
        zygote.sendall(json.dumps({"op": "judge", "pid": os.getpid()}).encode() + b"\n")
        serve_as_judge(front, zygote)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()

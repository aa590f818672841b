"""Connects a command to the warm judge, and starts one where there is none.

Nothing here is fatal. A socket that is dead, of other sources, of another user, or that does not
answer is not used: the command starts cold, as it would without a warm judge.
"""

import json
import os
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from attnlab.records import from_json, record
from attnlab.worker.cold_start import NOWHERE, isolated_python, worker_environment
from attnlab.worker.server_address import Address, find_address, known_addresses
from attnlab.worker.wire import TooLong, receive, send

INSTALLATION = str(Path(__file__).parent.parent)
SERVER = Path(__file__).parent / "server.py"
IDLE = 15 * 60.0  # seconds without a command after which it leaves
START_TIME = 120.0  # seconds that importing torch may take on a slow disk
ANSWER_TIME = 3.0  # seconds that a judge which is ready may take to say hello
QUEUE = 64
NO, YES = ("", "0", "no", "off", "false"), ("1", "yes", "on", "true")


@record
class ServerState:
    """A warm judge that answers."""

    pid: int
    seconds: float  # since it started
    commands: int  # that it has served
    running: int
    idle: float  # seconds without a command after which it leaves
    unused: float  # seconds since the last
    memory: int  # bytes that it holds; those that serve a command share most of them
    key: str  # of its sources
    installation: str = ""  # the folder of its attnlab


def why_unwanted() -> str:
    """Why this command does without a warm judge; "" where it may use one."""
    if not hasattr(os, "fork"):
        return "this system cannot fork processes"
    said = os.environ.get("ATTNLAB_SERVER", "").lower()
    if said in YES:
        return ""
    if said:
        return f"ATTNLAB_SERVER is set to {said}"
    for name in ("CI", "ATTNLAB_DEBUG"):
        if os.environ.get(name, "").lower() not in NO:
            return f"{name} is set"
    return ""


class WarmStart:
    """A connection to the warm judge; closing it ends the processes that serve this command."""

    warm = True

    def __init__(self, sock: socket.socket, folder: str | None) -> None:
        self.sock, self.folder = sock, folder

    def end(self) -> bytes:
        """Close it; the judge keeps what was printed to itself."""
        self.sock.close()  # its zygote removes the folder
        return b""


def warm_start(catalogue: str, notes: list[str]) -> WarmStart | None:
    """A connection to the warm judge, started where there is none; None where that fails. What the
    user should know is added to `notes`."""
    from attnlab.worker.scratch import make_scratch, remove_scratch

    address = find_address()
    if address is None:
        return None
    folder = make_scratch()
    wish = {"do": "serve", "key": address.key, "folder": folder, "catalogue": catalogue}
    try:
        for find in (_connect, _connect, _start):  # it may leave just when it is connected to
            sock = find(address)
            if sock is None:
                continue
            with ExitStack() as unless_greeted:
                unless_greeted.callback(sock.close)
                if _greet(sock, address, wish):
                    unless_greeted.pop_all()
                    return WarmStart(sock, folder)
    except TimeoutError:
        with suppress(OSError):
            address.socket.unlink()  # the next command starts another
        notes.append("the warm judge does not answer; this command runs without it")
    except OSError:
        pass
    remove_scratch(folder)
    return None


def ask_servers(what: Literal["status", "stop"], everywhere: bool = False) -> Iterator[ServerState]:
    """The state of every warm judge of this user that answers; `stop` tells it to leave, too,
    unless it is of another installation and not `everywhere`."""
    for address in known_addresses():
        state = _ask_server(address, "status")
        if state and what == "stop" and (everywhere or state.installation == INSTALLATION):
            _ask_server(address, what)
        if state:
            yield state


def _ask_server(address: Address, what: str) -> ServerState | None:
    with suppress(OSError):
        sock = _connect(address)
        if sock is not None:
            with sock:
                return _greet(sock, address, {"do": what, "key": address.key})
    return None


def _greet(sock: socket.socket, address: Address, wish: dict[str, Any]) -> ServerState | None:
    """Say what is wanted; the judge's state, None where it hangs up. Raises `TimeoutError`."""
    try:
        send(sock, json.dumps(wish).encode())
        answer = _wait(sock, address)
    except (EOFError, BrokenPipeError, ConnectionResetError, TooLong):
        return None
    with suppress(ValueError):
        state = from_json(ServerState, answer)
        return state if state.key == wish["key"] else None
    return None


def _wait(sock: socket.socket, address: Address) -> bytearray:
    """The answer; it takes longer only while the judge is being started."""
    begun = ready = time.monotonic()
    while time.monotonic() < ready + ANSWER_TIME and time.monotonic() < begun + START_TIME:
        sock.settimeout(0.5)
        try:
            sock.recv(1, socket.MSG_PEEK)
            sock.settimeout(ANSWER_TIME)
            return receive(sock)
        except TimeoutError:
            if _is_starting(address):
                ready = time.monotonic()
    raise TimeoutError


def _connect(address: Address) -> socket.socket | None:
    """A connection to the socket of our own user; None where nobody listens."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(ANSWER_TIME)  # its queue may be full
        sock.connect(str(address.socket))
        if _owner(sock) == os.getuid():
            return sock
    except (FileNotFoundError, ConnectionRefusedError):
        pass
    except OSError:
        sock.close()
        raise
    sock.close()
    return None


def _owner(sock: socket.socket) -> int:
    if not hasattr(socket, "SO_PEERCRED"):  # elsewhere the folder's rights have to do
        return os.getuid()
    size = struct.calcsize("3i")
    return int(struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1])


def _start(address: Address) -> socket.socket | None:
    """Start a judge and connect to it. Its socket listens at once: commands wait in its queue."""
    with _starter(address) as lock:
        if lock is None:
            return _await_socket(address)
        if sock := _connect(address):  # another command was faster
            return sock
        for old in address.kin:
            _ask_server(old, "stop")
        listener = _listen(address)
        with listener:
            arguments = [listener.fileno(), lock, address.socket, address.key, _idle_time()]
            server = subprocess.Popen(
                [*isolated_python(), str(SERVER), *map(str, arguments)],
                env=worker_environment(),
                cwd=NOWHERE,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(listener.fileno(), lock),
                start_new_session=True,
            )
            server.returncode = 0  # it outlives this command, which must not wait for it
        return _connect(address)


def _listen(address: Address) -> socket.socket:
    """A socket at the address. What is there is dead: it goes at once, and for good."""
    listener = socket.socket(socket.AF_UNIX)
    fresh = address.socket.with_suffix(f".{os.getpid()}")
    try:
        with suppress(FileNotFoundError):
            fresh.unlink()
        listener.bind(str(fresh))
        fresh.chmod(0o600)
        listener.listen(QUEUE)
        fresh.rename(address.socket)
    except OSError:
        listener.close()
        raise
    return listener


@contextmanager
def _starter(address: Address) -> Iterator[int | None]:
    """The lock of who starts the judge, handed on to it; None while another command holds it."""
    import fcntl

    lock = os.open(address.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        yield lock
    finally:
        os.close(lock)


def _is_starting(address: Address) -> bool:
    with _starter(address) as lock:
        return lock is None


def _await_socket(address: Address) -> socket.socket | None:
    """A connection to the judge that another command is starting just now."""
    until = time.monotonic() + ANSWER_TIME
    while time.monotonic() < until:
        if sock := _connect(address):
            return sock
        time.sleep(0.01)
    return None


def _idle_time() -> float:
    """`ATTNLAB_IDLE` in seconds, where it is a number of them."""
    with suppress(ValueError):
        return max(1.0, float(os.environ["ATTNLAB_IDLE"])) if "ATTNLAB_IDLE" in os.environ else IDLE
    return IDLE

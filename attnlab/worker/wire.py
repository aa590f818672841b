"""Frames on a socket: an 8-byte length, then that many bytes. No torch, nothing is unpickled."""

import os
import select
import socket
import struct
import time
from collections.abc import Callable

# How a child ends that itself, another process or the system killed: nobody can tell which.
KILLED = "was killed, or closed its connection to the judge"
HEAD = struct.Struct("<Q")
CAP = 256 << 20  # bytes in one frame
CHUNK = 1 << 20
LONGEST = 3600.0  # seconds of one wait; select knows no infinity


class TooLong(Exception):
    """The other side announced a frame over the cap."""


def send(sock: socket.socket, payload: bytes) -> None:
    sock.sendall(HEAD.pack(len(payload)) + payload)


def receive(sock: socket.socket) -> bytearray:
    """The next frame; raises EOFError if the other side has closed, TooLong over `CAP` bytes."""
    return _read_frame(sock.recv_into)


def receive_line(sock: socket.socket) -> bytes:
    """The next line, byte by byte, so nothing after it is consumed; b"" at the end."""
    line = b""
    while not line.endswith(b"\n"):
        byte = sock.recv(1)
        if not byte:
            return b""
        line += byte
    return line


def _read_frame(recv_into: Callable[[memoryview], int]) -> bytearray:
    (length,) = HEAD.unpack(_read_exactly(recv_into, HEAD.size))
    if length > CAP:
        raise TooLong(f"a frame of {length} bytes, over the cap of {CAP}")
    return _read_exactly(recv_into, length)


def _read_exactly(recv_into: Callable[[memoryview], int], count: int) -> bytearray:
    data = bytearray(count)
    left = memoryview(data)
    while left:
        size = recv_into(left)
        if not size:
            raise EOFError
        left = left[size:]
    return data


class Channel:
    """The trusted end of a socket to a process that may be hostile.

    Every wait ends at `deadline` (of time.monotonic) with TimeoutError. Meanwhile the process's
    stdout and stderr are read from `out`; `output` holds their first `max_output` bytes, which are
    never parsed. `pidfd` becomes readable when the process ends: processes that it forked may keep
    the socket open."""

    def __init__(
        self,
        sock: socket.socket,
        out: int,
        deadline: float,
        max_output: int,
        pidfd: int | None = None,
    ) -> None:
        self.sock, self.out, self.deadline, self.max_output = sock, out, deadline, max_output
        self.pidfd = () if pidfd is None else (pidfd,)
        self.output = bytearray()
        self.open = True  # its stdout
        sock.setblocking(False)
        os.set_blocking(out, False)

    def send(self, payload: bytes) -> None:
        left = memoryview(HEAD.pack(len(payload)) + payload)
        while left:
            try:
                left = left[self.sock.send(left[:CHUNK]) :]
            except BlockingIOError:
                self._wait(reading=False)
            except (BrokenPipeError, ConnectionResetError) as error:
                raise EOFError from error

    def receive(self) -> bytearray:
        """The next frame; raises as `receive` does, and TimeoutError at the deadline."""
        self._wait(reading=True)  # there is no answer yet, and a failed read costs more
        return _read_frame(self._recv_into)

    def _recv_into(self, room: memoryview) -> int:
        while True:
            try:
                return self.sock.recv_into(room)
            except BlockingIOError:
                self._wait(reading=True)
            except ConnectionResetError as error:
                raise EOFError from error

    def _wait(self, reading: bool) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:  # checked first: a process that prints without end is always ready
            raise TimeoutError
        reads: list[int | socket.socket] = [*self.pidfd]
        reads += [self.out] if self.open else []
        reads += [self.sock] if reading else []
        writes = [] if reading else [self.sock]
        ready = select.select(reads, writes, [], min(left, LONGEST))
        if self.out in ready[0]:
            self.drain()
        if self.sock in ready[0] or ready[1]:
            return
        if self.pidfd and self.pidfd[0] in ready[0]:
            raise EOFError

    def drain(self) -> None:
        """Read what the process has printed so far."""
        for _ in range(16):
            try:
                piece = os.read(self.out, 65536)
            except BlockingIOError:
                return
            except OSError:
                piece = b""
            if not piece:
                self.open = False
                return
            self.output += piece[: max(0, self.max_output - len(self.output))]

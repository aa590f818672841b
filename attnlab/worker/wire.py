"""Frames on a socket: an 8-byte length, then that many bytes. No torch, nothing is unpickled."""

from __future__ import annotations

import os
import select
import socket
import struct
import time

HEAD = struct.Struct("<Q")
CAP = 256 << 20  # bytes in one frame
CHUNK = 1 << 20
LONGEST = 3600.0  # seconds of one wait; select knows no infinity


class TooLong(Exception):
    """The other side announced a frame over the cap."""


def send(sock: socket.socket, payload: bytes) -> None:
    sock.sendall(HEAD.pack(len(payload)) + payload)


def receive(sock: socket.socket) -> bytearray:
    """The next frame; EOFError when the other side has gone."""
    (length,) = HEAD.unpack(_exactly(sock, HEAD.size))
    if length > CAP:
        raise TooLong(f"a frame of {length} bytes, over the cap of {CAP}")
    return _exactly(sock, length)


def _exactly(sock: socket.socket, count: int) -> bytearray:
    got = bytearray(count)
    left = memoryview(got)
    while left:
        read = sock.recv_into(left)
        if not read:
            raise EOFError
        left = left[read:]
    return got


class Channel:
    """The trusted end of a socket to a process that may be hostile.

    Every wait ends at `deadline` (of time.monotonic) with TimeoutError; the process's stdout and
    stderr are drained all the while, of which the first `keep` bytes are kept and never parsed.
    `life` becomes readable when the process has ended: processes that it forked hold the socket
    open, so that its end alone would not show there.
    """

    def __init__(
        self, sock: socket.socket, out: int, deadline: float, keep: int, life: int | None = None
    ) -> None:
        self.sock, self.out, self.deadline, self.keep = sock, out, deadline, keep
        self.life = () if life is None else (life,)
        self.said = bytearray()
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
        self._wait(reading=True)  # there is no answer yet, and asking in vain costs more
        (length,) = HEAD.unpack(self._exactly(HEAD.size))
        if length > CAP:
            raise TooLong(f"an answer of {length} bytes, over the cap of {CAP}")
        return self._exactly(length)

    def _exactly(self, count: int) -> bytearray:
        got = bytearray(count)
        left = memoryview(got)
        while left:
            try:
                read = self.sock.recv_into(left)
            except BlockingIOError:
                self._wait(reading=True)
                continue
            except ConnectionResetError as error:
                raise EOFError from error
            if not read:
                raise EOFError
            left = left[read:]
        return got

    def _wait(self, reading: bool) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:  # asked first: a process that prints without end is always ready
            raise TimeoutError
        reads: list[int | socket.socket] = [*self.life]
        reads += [self.out] if self.open else []
        reads += [self.sock] if reading else []
        writes = [] if reading else [self.sock]
        ready = select.select(reads, writes, [], min(left, LONGEST))
        if self.out in ready[0]:
            self.drain()
        if self.sock in ready[0] or ready[1]:
            return
        if self.life and self.life[0] in ready[0]:
            raise EOFError

    def drain(self) -> None:
        """Take what the process has printed so far."""
        for _ in range(16):
            try:
                piece = os.read(self.out, 65536)
            except BlockingIOError:
                return
            except OSError:
                self.open = False
                return
            if not piece:
                self.open = False
                return
            self.said += piece[: max(0, self.keep - len(self.said))]

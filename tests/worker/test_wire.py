"""Frames: they arrive whole or not at all, in time, and a flood of output changes nothing."""

import os
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from attnlab.worker import wire
from attnlab.worker.wire import CAP, HEAD, Channel, TooLong, receive, send


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def pipe():
    read, write = os.pipe()
    yield read, write
    for fd in (read, write):
        try:
            os.close(fd)
        except OSError:
            continue


def channel(sock, out, seconds=5.0, keep=100):
    return Channel(sock, out, time.monotonic() + seconds, keep)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 1 << 16, 3 << 20])
def test_a_frame_arrives_as_it_was_sent(pair, size):
    """Every size, also over what a socket takes in one go."""
    payload = os.urandom(size)
    sender = threading.Thread(target=send, args=(pair[0], payload))
    sender.start()
    assert receive(pair[1]) == payload
    sender.join()


@pytest.mark.parametrize("size", [0, 9, 3 << 20])
def test_a_channel_speaks_the_same_frames(pair, pipe, size):
    """The side that never blocks and the side that does understand each other, both ways."""
    payload = os.urandom(size)
    trusted = channel(pair[0], pipe[0])

    def echo():
        send(pair[1], receive(pair[1]))

    other = threading.Thread(target=echo)
    other.start()
    trusted.send(payload)
    assert trusted.receive() == payload
    other.join()


@pytest.mark.parametrize("sent", [b"", b"\0\0\0", HEAD.pack(10), HEAD.pack(10) + b"half"])
def test_an_end_in_the_middle_is_an_end(pair, pipe, sent):
    """A process that dies while it writes gives EOFError on both kinds of reader."""
    pair[1].sendall(sent)
    pair[1].close()
    with pytest.raises(EOFError):
        channel(pair[0], pipe[0]).receive()


@pytest.mark.parametrize("sent", [b"", HEAD.pack(10) + b"half"])
def test_a_blocking_reader_sees_the_end_too(pair, sent):
    """The front never waits for a worker that has gone."""
    pair[1].sendall(sent)
    pair[1].close()
    with pytest.raises(EOFError):
        receive(pair[0])


@pytest.mark.parametrize("length", [CAP + 1, 2**63, 2**64 - 1])
def test_a_frame_over_the_cap_is_refused_unread(pair, pipe, length):
    """An announced length reserves no memory."""
    pair[1].sendall(HEAD.pack(length))
    with pytest.raises(TooLong, match=str(length)):
        receive(pair[0])
    pair[1].sendall(HEAD.pack(length))
    with pytest.raises(TooLong, match=str(length)):
        channel(pair[0], pipe[0]).receive()


def test_a_frame_of_the_cap_is_taken(pair, pipe, monkeypatch):
    """The cap is the largest size, not the first that is refused."""
    monkeypatch.setattr(wire, "CAP", 16)
    pair[1].sendall(HEAD.pack(16) + b"x" * 16)
    assert channel(pair[0], pipe[0]).receive() == b"x" * 16


@pytest.mark.parametrize("sent", [b"", b"\1", HEAD.pack(5) + b"1234"])
def test_silence_ends_at_the_deadline(pair, pipe, sent):
    """Nothing, half a head and half a body: each wait ends in time."""
    pair[1].sendall(sent)
    with pytest.raises(TimeoutError):
        channel(pair[0], pipe[0], 0.1).receive()


def test_a_reader_that_does_not_read_ends_at_the_deadline(pair, pipe):
    """A candidate that never takes its input cannot hold the judge."""
    with pytest.raises(TimeoutError):
        channel(pair[0], pipe[0], 0.1).send(bytes(8 << 20))


def test_endless_output_does_not_move_the_deadline(pair):
    """/dev/zero is always ready: a process that prints without end is not waited for."""
    with Path("/dev/zero").open("rb", buffering=0) as zero, pytest.raises(TimeoutError):
        channel(pair[0], zero.fileno(), 0.1).receive()


def test_a_closed_reader_is_an_end(pair, pipe):
    """Writing to a process that has gone is EOFError, not a signal or a broken pipe."""
    trusted = channel(pair[0], pipe[0])
    pair[1].close()
    with pytest.raises(EOFError):
        trusted.send(bytes(8 << 20))


def test_output_is_drained_while_waiting_and_capped(pair, pipe):
    """A candidate may print more than a pipe holds before it answers; the first bytes are kept."""
    trusted = channel(pair[0], pipe[0], keep=10)

    def print_and_answer():
        for _ in range(20):
            os.write(pipe[1], b"0123456789abcdef" * 4096)
        send(pair[1], b"done")

    other = threading.Thread(target=print_and_answer)
    other.start()
    assert trusted.receive() == b"done"
    other.join()
    trusted.drain()
    assert bytes(trusted.output) == b"0123456789"


def test_drain_never_waits(pair, pipe):
    """With nothing printed, and after the other end has closed, draining returns at once."""
    trusted = channel(pair[0], pipe[0])
    trusted.drain()
    assert trusted.open
    assert not trusted.output
    os.write(pipe[1], b"last words")
    os.close(pipe[1])
    trusted.drain()
    trusted.drain()
    assert not trusted.open
    assert bytes(trusted.output) == b"last words"


def test_a_closed_output_is_no_end_of_the_conversation(pair, pipe):
    """A candidate that closes its stdout still answers, and the judge does not spin meanwhile."""
    os.close(pipe[1])
    trusted = channel(pair[0], pipe[0])
    timer = threading.Timer(0.2, send, (pair[1], b"here"))
    timer.start()
    used = time.process_time()
    assert trusted.receive() == b"here"
    assert time.process_time() - used < 0.15
    timer.join()


def test_an_end_is_seen_though_another_holds_the_socket(pair, pipe):
    """What was written before the end still arrives; then it is over, without a wait."""
    life, end = os.pipe()
    trusted = Channel(pair[0], pipe[0], time.monotonic() + 60, 100, life)
    send(pair[1], b"last words")
    os.close(end)
    assert trusted.receive() == b"last words"
    with pytest.raises(EOFError):  # a wait would end in TimeoutError
        trusted.receive()
    os.close(life)


def test_the_head_is_eight_bytes_little_endian():
    """Both sides of the border agree on the form whatever the machine."""
    assert HEAD.pack(258) == struct.pack("<Q", 258) == b"\x02\x01" + bytes(6)

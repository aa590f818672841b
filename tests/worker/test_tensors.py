"""Tensors as bytes: what goes in comes out bit by bit, and no bytes at all do harm."""

import json
import math
import struct
import subprocess
import sys
from contextlib import suppress

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnlab.worker import tensors
from attnlab.worker.tensors import DTYPES, MAX_DIMS, Malformed, pack, unpack

SHAPES = st.lists(st.integers(0, 4), max_size=5).map(tuple)


def bits(t):
    """A tensor's content, so that NaN equals itself and -0.0 is not 0.0."""
    flat = torch.empty(t.numel(), dtype=t.dtype).copy_(t.reshape(-1))
    return flat.view(torch.uint8).tolist()


def drawn(shape, dtype, seed):
    """Any bits at all, read as `dtype`: NaN with a payload, denormals, the infinities."""
    count = math.prod(shape) * dtype.itemsize
    raw = torch.randint(0, 256, (count,), generator=torch.Generator().manual_seed(seed))
    if dtype is torch.bool:
        raw = raw % 2
    return raw.to(torch.uint8).view(dtype).reshape(shape) if count else torch.empty(shape).to(dtype)


def same(a, b):
    assert type(b) is torch.Tensor
    assert b.dtype is a.dtype
    assert b.shape == a.shape
    assert bits(a) == bits(b)


@given(SHAPES, st.sampled_from(DTYPES), st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_every_dtype_and_shape_comes_back_bit_by_bit(shape, dtype, seed):
    """0-d and empty tensors, bool, bfloat16 and NaN payloads included."""
    t = drawn(shape, dtype, seed)
    same(t, unpack(pack({"t": t}))["t"])


@given(SHAPES, st.permutations(range(5)), st.integers(0, 9))
@settings(max_examples=50, deadline=None)
def test_the_layout_in_memory_does_not_matter(shape, order, seed):
    """Transposed, strided and expanded views arrive as what they show."""
    t = drawn(shape, torch.float32, seed)
    for view in (
        t.permute([axis for axis in order if axis < t.dim()]),
        t[..., ::2] if t.dim() else t,
        t.unsqueeze(0).expand(3, *t.shape),
        t.requires_grad_(),
    ):
        same(view.detach(), unpack(pack(view)))


MESSAGES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(MESSAGES)
@settings(max_examples=50, deadline=None)
def test_plain_values_come_back(message):
    """Numbers, texts, lists and dicts, as deep as they are nested."""
    assert unpack(pack(message)) == message


def test_tensors_may_stand_anywhere():
    """In lists of pairs, which is how inputs travel, and beside None."""
    one, two = torch.ones(2), torch.zeros(())
    back = unpack(pack({"inputs": [("x", one), ("mask", None)], "deep": {"er": [[two]]}}))
    same(one, back["inputs"][0][1])
    assert back["inputs"][1] == ["mask", None]
    same(two, back["deep"]["er"][0][0])


ODD = {
    "a complex64 tensor of shape (2,)": lambda: torch.zeros(2, dtype=torch.complex64),
    "a float32 sparse_coo tensor of shape (2, 2)": lambda: torch.eye(2).to_sparse(),
    "a float32 tensor of shape (3,) on the meta device": lambda: torch.empty(3, device="meta"),
    "a float8_e5m2 tensor of shape (1,)": lambda: torch.zeros(1).to(torch.float8_e5m2),
    f"a float32 tensor of shape ({1 << 40},), too large to send": lambda: torch.zeros(1).expand(
        1 << 40
    ),
}


@pytest.mark.parametrize("told", ODD)
def test_a_tensor_that_cannot_travel_is_described(told):
    """The judge learns what it was, and the process that made it lives."""
    assert unpack(pack({"output": ODD[told]()})) == {"output": {"$odd": told}}


def test_too_many_axes_are_described():
    """What one side would refuse, the other does not send."""
    told = unpack(pack(torch.zeros([1] * (MAX_DIMS + 1))))["$odd"]
    assert "of shape (1, 1" in told


def test_a_subclass_arrives_as_a_plain_tensor():
    """What a subclass says of itself does not count; its elements do."""

    class Liar(torch.Tensor):
        shape = property(lambda self: torch.Size([7]))
        dtype = property(lambda self: torch.int64)

    t = torch.arange(3.0)
    same(t, unpack(pack(t.as_subclass(Liar))))


def test_a_subclass_that_raises_is_described():
    """A hostile `__torch_function__` makes the tensor odd, and is not heard any further."""

    class Bad(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise RuntimeError

    assert unpack(pack(torch.ones(2).as_subclass(Bad))) == {
        "$odd": "a tensor that cannot be described"
    }


# ---------------------------------------------------------------- bytes from a stranger


def framed(head, *blobs):
    head = head if isinstance(head, bytes) else json.dumps(head).encode()
    head += b" " * (-len(head) % 8)
    parts = [struct.pack("<Q", len(head)), head]
    return b"".join([*parts, *(struct.pack("<Q", len(b)) + b + bytes(-len(b) % 8) for b in blobs)])


def blob(number, shape, body):
    return struct.pack(f"<BB6x{len(shape)}q", number, len(shape), *shape) + body


BAD = {
    "nothing": b"",
    "half a length": b"\1\0",
    "no JSON": framed(b"{"),
    "JSON that is no UTF-8": framed(b'"\xff"'),
    "a number without end": framed(b"1" * 5000),
    "brackets without end": framed(b"[" * 100_000),
    "a tensor that is not there": framed({"$": 0}),
    "a tensor by name": framed({"$": "a"}, blob(0, (), b"1234")),
    "a tensor by list": framed({"$": [0]}, blob(0, (), b"1234")),
    "half a tensor's length": framed({}) + b"\1\0\0",
    "an empty blob": framed({}, b""),
    "a dtype that is none": framed({}, blob(len(DTYPES), (), b"1234")),
    "too many axes": framed({}, blob(0, (1,) * 33, b"1234")),
    "fewer axes than announced": framed({}, struct.pack("<BB6x", 0, 3) + bytes(8)),
    "a head of an odd length": struct.pack("<Q", 3) + b"{} " + struct.pack("<Q", 12) + bytes(16),
    "too few elements": framed({}, blob(0, (2,), b"1234")),
    "too many elements": framed({}, blob(0, (1,), bytes(8))),
    "a negative axis": framed({}, blob(0, (-1,), b"")),
    "two negative axes": framed({}, blob(0, (-1, -1), b"1234")),
    "axes whose product is zero and whose strides overflow": framed(
        {}, blob(0, (0, 2**62, 2**62), b"")
    ),
    "a length that reaches over the end": framed({}) + struct.pack("<Q", 2**63),
}


@pytest.mark.parametrize("name", BAD)
def test_bytes_that_are_no_message_are_malformed(name):
    """Each way to be wrong ends in the one exception that the judge expects."""
    with pytest.raises(Malformed):
        unpack(BAD[name])


GOOD = pack({"output": torch.randn(2, 3), "more": [torch.zeros(0, 2), True, "text"]})


def only_malformed(data):
    with suppress(Malformed):
        unpack(data)


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_random_bytes_are_a_message_or_malformed(data):
    """No other exception, whatever comes."""
    only_malformed(data)
    only_malformed(framed({"output": {"$": 0}}, data))


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_message_is_a_message_or_malformed(data):
    """Cut off, or with bytes changed, anywhere."""
    message = bytearray(GOOD[: data.draw(st.integers(0, len(GOOD)))])
    for _ in range(data.draw(st.integers(0, 3)) if message else 0):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    only_malformed(bytes(message))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), st.integers(0, 255))
@settings(max_examples=100, deadline=None)
def test_announced_sizes_reserve_nothing(shape, number):
    """A shape is believed only when as many bytes came with it."""
    only_malformed(framed({"$": 0}, blob(number, shape, bytes(16))))


def test_a_tensor_of_the_largest_size_still_fits_a_frame(monkeypatch):
    """The limit of one tensor leaves room for the head of its message."""
    assert tensors.MAX_BYTES + 1024 < tensors.CAP
    monkeypatch.setattr(tensors, "MAX_BYTES", 16)
    same(torch.ones(4), unpack(pack(torch.ones(4))))
    assert "too large" in unpack(pack(torch.ones(5)))["$odd"]


def test_numpy_is_not_needed():
    """It is none of our dependencies, and torch works without it."""
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import torch\n"
        "from attnlab.worker.tensors import pack, unpack\n"
        "for t in (torch.randn(2, 3).t(), torch.ones(2, dtype=torch.bfloat16), torch.zeros(0)):\n"
        "    assert torch.equal(unpack(pack({'t': t}))['t'], t)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)

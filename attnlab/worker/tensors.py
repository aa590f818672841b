"""Messages with tensors in them, as bytes: a JSON header, then the raw data of each tensor."""

import ctypes
import json
import math
import struct
from typing import Any

import torch
from torch import Tensor

from attnlab.worker.wire import CAP

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip
NUMBER = {dtype: i for i, dtype in enumerate(DTYPES)}
MAX_DIMS = 32
LENGTH = struct.Struct("<Q")
FACTS = struct.Struct("<BB6x")  # a tensor's dtype and number of axes
SHAPES = [struct.Struct(f"<{dims}Q") for dims in range(MAX_DIMS + 1)]
ALIGNED = 8  # bytes: everything starts at a multiple of it, as numbers in memory must
MAX_BYTES = CAP // 2  # of one tensor, so that it fits into a frame


class Malformed(Exception):
    """Bytes that are no message: the other side does not speak the protocol."""


def pack(message: Any) -> bytes:
    """Dicts, lists, strings, numbers, None and tensors. A tensor that has no raw form (sparse,
    complex, meta, quantised) or is too large becomes `{"$odd": "what it is"}`."""
    blobs: list[bytes] = []
    known: dict[int, Any] = {}  # by id: calls can share tensors

    def encode(value: Any) -> Any:
        """What stands in the header for a tensor, which JSON does not know."""
        if not isinstance(value, Tensor):
            raise TypeError(f"a {type(value).__name__} cannot be sent")
        if id(value) not in known:
            blob = _raw(value)
            known[id(value)] = {"$": len(blobs)} if blob else {"$odd": _describe(value)}
            blobs.extend([blob] if blob else [])
        return known[id(value)]

    head = json.dumps(message, default=encode).encode("utf-8", "surrogatepass")
    head += b" " * (-(len(head) + LENGTH.size) % ALIGNED)
    parts = [LENGTH.pack(len(head)), head]
    for blob in blobs:
        parts += [LENGTH.pack(len(blob)), blob, bytes(-len(blob) % ALIGNED)]
    return b"".join(parts)


def unpack(data: bytes | bytearray) -> Any:
    """The message in `data`; raises `Malformed` for bytes that are none. Tensors share the memory
    of `data` if it is a bytearray."""
    try:
        (length,) = LENGTH.unpack_from(data)
        at = LENGTH.size + length
        tensors, room = [], data if isinstance(data, bytearray) else bytearray(data)
        while at < len(room):
            (size,) = LENGTH.unpack_from(room, at)
            tensors.append(_tensor(room, at + LENGTH.size, size))
            at += LENGTH.size + size + -size % ALIGNED

        def decode(entry: dict[str, Any]) -> Any:
            return tensors[entry["$"]] if entry.keys() == {"$"} else entry

        head = data[LENGTH.size : LENGTH.size + length]
        return json.loads(head, object_hook=decode)
    except Malformed:
        raise
    except (
        *(ValueError, KeyError, IndexError, TypeError),
        *(struct.error, RuntimeError, RecursionError),
    ) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from error


def _raw(t: Tensor) -> bytes | None:
    try:
        if type(t) is not Tensor or t.requires_grad:
            t = torch.Tensor.detach(t).as_subclass(Tensor)
        number = NUMBER.get(t.dtype)
        if number is None or t.layout is not torch.strided or t.is_meta:
            return None
        size, dims = t.numel() * t.itemsize, t.dim()
        if size > MAX_BYTES or dims > MAX_DIMS:
            return None
        head = FACTS.pack(number, dims) + SHAPES[dims].pack(*t.shape)
        if not (t.is_cpu and t.is_contiguous()) or t.is_neg():
            t = t.cpu().resolve_neg().contiguous()
        # NumPy would do it, but torch does not bring it along.
        return head + ctypes.string_at(t.data_ptr(), size)
    except Exception:  # a subclass may raise anything: it is described, not sent
        return None


def _describe(t: Tensor) -> str:
    try:
        kind = "" if t.layout is torch.strided else f" {str(t.layout).removeprefix('torch.')}"
        place = " on the meta device" if t.is_meta else ""
        large = ", too large to send" if t.numel() * t.itemsize > MAX_BYTES else ""
        dtype = str(t.dtype).removeprefix("torch.")
        return f"a {dtype}{kind} tensor of shape {tuple(t.shape)}{place}{large}"
    except Exception:
        return "a tensor that cannot be described"


def _tensor(room: bytearray, start: int, size: int) -> Tensor:
    """The tensor in the `size` bytes from `start` on; it shares their memory."""
    number, dims = FACTS.unpack_from(room, start)
    if start % ALIGNED or number >= len(DTYPES) or dims > MAX_DIMS:
        raise Malformed(f"a tensor of dtype {number} with {dims} axes at byte {start}")
    shape = SHAPES[dims].unpack_from(room, start + FACTS.size)
    begin = start + FACTS.size + SHAPES[dims].size
    count, left, dtype = math.prod(shape), start + size - begin, DTYPES[number]
    if left != count * dtype.itemsize:
        raise Malformed(f"a tensor of shape {shape} in {left} bytes")
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(room, dtype=dtype, count=count, offset=begin).view(shape)

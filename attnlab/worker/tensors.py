"""Messages with tensors in them, as bytes: a JSON header, then the raw data of each tensor."""

from __future__ import annotations

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
MAX_BYTES = CAP // 2  # of one tensor, so that a frame has room for it


class Malformed(Exception):
    """Bytes that are no message: the other side does not speak the protocol."""


def pack(message: Any) -> bytes:
    """Dicts, lists, strings, numbers, None and tensors. A tensor that has no raw form (sparse,
    complex, meta, quantised) or is too large becomes `{"$odd": "what it is"}`."""
    blobs: list[bytes] = []

    def flat(value: Any) -> Any:
        if isinstance(value, Tensor):
            blob = _raw(value)
            if blob is None:
                return {"$odd": _describe(value)}
            blobs.append(blob)
            return {"$": len(blobs) - 1}
        if isinstance(value, dict):
            return {k: flat(v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [flat(v) for v in value]
        return value

    head = json.dumps(flat(message)).encode("utf-8", "surrogatepass")
    parts = [struct.pack("<I", len(head)), head]
    for blob in blobs:
        parts += [struct.pack("<Q", len(blob)), blob]
    return b"".join(parts)


def unpack(data: bytes) -> Any:
    """The message in `data`; raises `Malformed`, whatever the bytes are."""
    try:
        (length,) = struct.unpack_from("<I", data)
        head = json.loads(data[4 : 4 + length])
        tensors, at = [], 4 + length
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            tensors.append(_tensor(data[at + 8 : at + 8 + size]))
            at += 8 + size
        return _filled(head, tensors)
    except Malformed:
        raise
    except (ValueError, KeyError, IndexError, TypeError, struct.error, RuntimeError) as error:
        raise Malformed(f"{type(error).__name__}: {error}") from error


def _filled(value: Any, tensors: list[Tensor]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$"}:
            return tensors[value["$"]]
        return {k: _filled(v, tensors) for k, v in value.items()}
    if isinstance(value, list):
        return [_filled(v, tensors) for v in value]
    return value


def _raw(t: Tensor) -> bytes | None:
    try:
        if type(t) is not Tensor or t.requires_grad:
            t = torch.Tensor.detach(t).as_subclass(Tensor)
        number = NUMBER.get(t.dtype)
        if number is None or t.layout is not torch.strided or t.is_meta:
            return None
        if t.numel() * t.itemsize > MAX_BYTES or t.dim() > MAX_DIMS:
            return None
        head = struct.pack(f"<BB{t.dim()}q", number, t.dim(), *t.shape)
        t = t.cpu().resolve_neg()
        if t.dtype is torch.bfloat16:  # which NumPy does not know
            t = t.view(torch.int16)
        return head + t.numpy().tobytes()
    except Exception:  # a subclass may do anything here: it is described, not sent
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


def _tensor(blob: bytes) -> Tensor:
    number, dims = struct.unpack_from("<BB", blob)
    if number >= len(DTYPES) or dims > MAX_DIMS:
        raise Malformed(f"a tensor of dtype {number} with {dims} axes")
    shape = struct.unpack_from(f"<{dims}q", blob, 2)
    dtype, body = DTYPES[number], blob[2 + 8 * dims :]
    count = math.prod(shape)
    if min(shape, default=0) < 0 or len(body) != count * dtype.itemsize:
        raise Malformed(f"a tensor of shape {shape} in {len(body)} bytes")
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(body), dtype=dtype).reshape(shape)

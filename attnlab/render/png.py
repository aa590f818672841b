"""A heat map as a PNG image within an HTML page: a hundred times smaller than drawn cells."""

import base64
import struct
import zlib
from math import isfinite

from attnlab.records import Heat
from attnlab.render.heat import NOT_FINITE, fit_scale, level_rgb

SIGNATURE = b"\x89PNG\r\n\x1a\n"


def heat_uri(heat: Heat) -> str:
    """The values as a `data:` address, one pixel each, in the colours of the terminal's map."""
    scale = fit_scale(heat.rows)
    rows = [
        b"".join(
            bytes(level_rgb(scale.level(value) if isfinite(value) else NOT_FINITE)) for value in row
        )
        for row in heat.rows
    ]
    wide = len(heat.rows[0]) if heat.rows else 0
    return f"data:image/png;base64,{base64.b64encode(encode_png(rows, wide)).decode()}"


def encode_png(rows: list[bytes], width: int) -> bytes:
    """An image of `width` pixels; each row holds red, green and blue of its pixels."""
    head = struct.pack(">IIBBBBB", width, len(rows), 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    parts = ((b"IHDR", head), (b"IDAT", pixels), (b"IEND", b""))
    return SIGNATURE + b"".join(map(_chunk, *zip(*parts, strict=True)))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

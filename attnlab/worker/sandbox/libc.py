"""The C library of this process, opened once: what Python has no function for is called there."""

from __future__ import annotations

import ctypes
import os
from functools import cache


@cache
def libc() -> ctypes.CDLL:
    """Opened by the zygote, before it forks."""
    return ctypes.CDLL(None, use_errno=True)


def done(result: int) -> int:
    """What a call gave; raises `OSError` where that says that it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

"""The C library of this process, for system calls that Python has no function for."""

import ctypes
import os
from functools import cache


@cache
def libc() -> ctypes.CDLL:
    """Opened by the zygote, before it forks."""
    return ctypes.CDLL(None, use_errno=True)


def check_result(result: int) -> int:
    """The result of a call; raises `OSError` where it is negative, which means that it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

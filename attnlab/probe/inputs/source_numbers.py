"""Numbers that a source names: sizes at which it may do something else.

`if S > 64`, a buffer of 1024 rows, chunks of 8: what goes wrong there shows at no size below, and
all sizes cannot be tried. Read off the compiled text, so that `2**10` and `1 << 10` count as well;
nothing of it is run.
"""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterator

SMALLEST, LARGEST = 4, 4096  # as sizes: of smaller ones enough are drawn, larger ones take too long


def numbers_in(text: str) -> tuple[int, ...]:
    """Those that may be sizes, in order; none where the text is no Python."""
    try:
        with warnings.catch_warnings():  # they would be printed for every file, where nobody reads
            warnings.simplefilter("ignore")
            code = compile(text, "", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = {n for n in _constants(code.co_consts) if SMALLEST <= n <= LARGEST}
    return tuple(sorted(found))


def _constants(values: tuple[object, ...]) -> Iterator[int]:
    for value in values:
        if isinstance(value, types.CodeType):
            yield from _constants(value.co_consts)
        elif isinstance(value, tuple | frozenset):
            yield from _constants(tuple(value))
        elif type(value) is int:
            yield abs(value)
        elif type(value) is float and value.is_integer():
            yield abs(int(value))

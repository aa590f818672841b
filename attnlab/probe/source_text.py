"""What a candidate's text says: numbers that it names, and where it calls something.

`if S > 64`, a buffer of 1024 rows, chunks of 8: what goes wrong there shows at no size below, and
all sizes cannot be tried. Numbers are read off the compiled text, so that `2**10` and `1 << 10`
count as well. None of it is run.
"""

import ast
import types
import warnings
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Any

SMALLEST, LARGEST = 4, 4096  # as sizes: of smaller ones enough are drawn, larger ones take too long


def _compile(text: str, flags: int = 0) -> Any:
    """The code of a text, or its syntax tree by these flags; None where it is no Python."""
    try:
        with warnings.catch_warnings():  # they would be printed for every file, where nobody reads
            warnings.simplefilter("ignore")
            return compile(text, "", "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def numbers_in(text: str, least: int = SMALLEST, most: int = LARGEST) -> tuple[int, ...]:
    """Those that may be sizes, in order; none where the text is no Python."""
    code = _compile(text)
    found = {n for n in _constants((code,)) if least <= n <= most}
    return tuple(sorted(found))


def _constants(values: tuple[object, ...]) -> Iterator[int]:
    """The whole numbers among constants, and inside the code and the containers among them."""
    for value in values:
        if isinstance(value, types.CodeType):
            yield from _constants(value.co_consts)
        elif isinstance(value, tuple | frozenset):
            yield from _constants(tuple(value))
        elif type(value) is int:
            yield abs(value)
        elif type(value) is float and value.is_integer():
            yield abs(int(value))


@lru_cache(maxsize=16)
def lines_calling(text: str, names: Collection[str]) -> tuple[int, ...]:
    """The lines on which something of these names is called, in order; none where the text is no
    Python. What is only named, as a type is, is no call."""
    tree = _compile(text, ast.PyCF_ONLY_AST) or ast.Module([], [])
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return tuple(sorted({node.lineno for node in calls if _called(node) in names}))


def _called(node: ast.Call) -> str:
    """`empty` of `torch.empty(3)` and of `empty(3)`."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))

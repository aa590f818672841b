"""Where a candidate's text calls something. None of it is run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Collection
from functools import lru_cache


@lru_cache(maxsize=16)
def lines_calling(text: str, names: Collection[str]) -> tuple[int, ...]:
    """The lines on which something of these names is called, in order; none where the text is no
    Python. What is only named, as a type is, is no call."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return tuple(sorted({node.lineno for node in calls if _called(node) in names}))


def _called(node: ast.Call) -> str:
    """`empty` of `torch.empty(3)` and of `empty(3)`."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))

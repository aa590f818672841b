"""Constructor arguments that are objects: `Config(n_embd=D)`, made where the class is."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any


def resolved(text: str, sizes: Mapping[str, int]) -> str:
    """`Config(n_embd=D)` with sizes for symbols; any other text as it is."""
    call = _call(text)
    if call is None:
        return text
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Name) and keyword.value.id in sizes:
            keyword.value = ast.Constant(sizes[keyword.value.id])
    return ast.unparse(call)


def made(value: Any, space: Mapping[str, Any]) -> Any:
    """The object, where the text names a class in `space`; any other value as it is."""
    call = _call(value) if isinstance(value, str) else None
    if call is None or not callable(space.get(call.func.id)):  # type: ignore[attr-defined]
        return value
    maker = space[call.func.id]  # type: ignore[attr-defined]
    return maker(**{k.arg or "": ast.literal_eval(k.value) for k in call.keywords})


def _call(text: str) -> ast.Call | None:
    if not text.endswith(")"):
        return None
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return None
    plain = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args
    return node if plain and isinstance(node, ast.Call) else None

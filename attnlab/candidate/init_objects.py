"""Constructor arguments that are objects: `Config(n_embd=D)`, made where the class is."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from attnlab.sizes import parse_config_call


def made(value: Any, space: Mapping[str, Any]) -> Any:
    """The object, where the text names a class in `space`; any other value as it is."""
    call = parse_config_call(value) if isinstance(value, str) else None
    if call is None or not callable(space.get(call.func.id)):  # type: ignore[attr-defined]
        return value
    maker = space[call.func.id]  # type: ignore[attr-defined]
    return maker(**{k.arg or "": ast.literal_eval(k.value) for k in call.keywords})

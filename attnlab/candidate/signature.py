"""Where a callable takes which input: by position, or by name alone."""

from __future__ import annotations

import inspect
from typing import Any


class ParameterPositions:
    """Reads a function once: its signature costs as much as a small forward pass."""

    def __init__(self) -> None:
        self.function: object = None  # the one that was asked about last
        self.places: dict[str, int] = {}

    def of(self, target: Any) -> dict[str, int]:
        """Where each parameter stands that may be given by name; -1 where it must be."""
        function = getattr(target, "__func__", target)
        if self.function is not function:
            self.function, self.places = function, _places(target)
        return self.places


def _places(target: Any) -> dict[str, int]:
    try:
        parameters = inspect.signature(target).parameters.values()
    except (TypeError, ValueError):
        return {}
    return {
        p.name: -1 if p.kind is p.KEYWORD_ONLY else i
        for i, p in enumerate(parameters)
        if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }

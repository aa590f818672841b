"""Right modules that nobody here wrote, with random weights: a trace of them must raise nothing.

Sizes differ from each other, so that a name says what an axis is and not how long it happens to
be. Nothing is downloaded: every model is made from its configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from torch import nn

PARTS = ("pytorch", "text", "pictures", "more", "lucid")


class Given(NamedTuple):
    """A module and one call of it. `dims` names the axes of its inputs."""

    module: nn.Module
    kwargs: dict[str, Any]
    dims: str


class Model(NamedTuple):
    name: str
    library: str
    build: Callable[[], Given]


def models(word: str = "") -> Iterator[Model]:
    """Those whose name holds `word`. Building one raises ImportError without its library."""
    for part in PARTS:
        module = import_module(f"{__name__}.{part}")
        for name, build in module.MODELS.items():
            if word.lower() in f"{module.LIBRARY} {name}".lower():
                yield Model(name, module.LIBRARY, build)

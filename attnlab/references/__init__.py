"""Correct modules, written to be read; candidates are compared with them.

A module of this folder may define several; each public `nn.Module` class in it is a unit that a
challenge can name. A new one is a new file, or a class in one: nothing is registered.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@cache
def unit(name: str) -> type[nn.Module]:
    """The reference class of that name; raises `KeyError`, which lists those that exist."""
    seen = []
    for found, cls in _units():
        if found == name:
            return cls
        seen.append(found)
    raise KeyError(f"no reference is called {name!r}; there are {', '.join(sorted(seen))}")


def _units() -> Iterator[tuple[str, type[nn.Module]]]:
    """Every unit, file by file: a file is imported only when the search gets there."""
    from torch import nn

    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name, value in vars(module).items():
            ours = isinstance(value, type) and value.__module__ == module.__name__
            if ours and issubclass(value, nn.Module) and not name.startswith("_"):
                yield name, value

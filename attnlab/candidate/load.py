"""Brings a candidate's source to life: a name for its module, its surroundings, its objects."""

from __future__ import annotations

import inspect
import linecache
import os
import sys
from pathlib import Path
from typing import Any

from torch import nn

from attnlab.candidate.call_errors import ArgumentMismatch

_loaded: set[str] = set()  # names that candidates have had in sys.modules


def made_of(thing: Any, order: list[Any], named: dict[str, Any]) -> Any:
    """What a class or a factory makes; a function that makes no module is itself the module."""
    if inspect.isclass(thing):
        with ArgumentMismatch(thing, [*map(repr, order), *named]):
            return thing(*order, **named)
    if isinstance(thing, nn.Module):
        return thing
    try:
        inspect.signature(thing).bind(*order, **named)
    except (TypeError, ValueError):
        return thing
    made = thing(*order, **named)
    return made if callable(made) else thing


def module_name(file: str) -> str:
    """The file's own name, but no name that something else may still import: random, json."""
    name = Path(file).stem.replace("-", "_") or "candidate"
    if name not in _loaded and (name in sys.modules or name in sys.stdlib_module_names):
        name += "_candidate"
    _loaded.add(name)
    return name


def remember(file: str, text: str) -> None:
    """Let tracebacks and traces show the source of code that lies in no file they may read."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


def move_in(own: dict[str, Any]) -> None:
    """Give a user's own target the surroundings it has when the user runs it."""
    os.chdir(own["cwd"])
    os.environ.clear()
    os.environ.update(own["env"])
    for entry in reversed(own["sys_path"]):
        if entry in sys.path:
            sys.path.remove(entry)
        sys.path.insert(0, entry)

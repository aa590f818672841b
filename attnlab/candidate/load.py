"""Brings a candidate's source to life: a name for its module, its surroundings, its objects."""

import ast
import inspect
import linecache
import os
import sys
import types
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import nn

from attnlab.candidate.signature import ArgumentMismatch
from attnlab.sizes import parse_object

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


@lru_cache(maxsize=64)
def compile_source(text: str, file: str) -> types.CodeType:
    """The code of a module's source; a program's files are loaded for each of its units."""
    return compile(text, file, "exec", dont_inherit=True)


def move_in(own: dict[str, Any]) -> None:
    """Give a user's own target the surroundings it has when the user runs it."""
    os.chdir(own["cwd"])
    os.environ.clear()
    os.environ.update(own["env"])
    for entry in reversed(own["sys_path"]):
        if entry in sys.path:
            sys.path.remove(entry)
        sys.path.insert(0, entry)


def make_argument(value: Any, space: Mapping[str, Any]) -> Any:
    """A constructor argument: the object that a text such as `Config(n_embd=8)` makes of a class
    in `space`, the tuple of `(3, 12)`; any other value as it is."""
    call = parse_object(value) if isinstance(value, str) else None
    if isinstance(call, ast.Tuple):
        try:
            return ast.literal_eval(call)
        except ValueError:  # a name in it has no size
            return value
    if call is None or not callable(space.get(call.func.id)):  # type: ignore[attr-defined]
        return value
    kind = space[call.func.id]  # type: ignore[attr-defined]
    return kind(**{k.arg or "": ast.literal_eval(k.value) for k in call.keywords})


class FunctionModule(nn.Module):
    """A function where a module is wanted."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        try:
            inspect.signature(function)
            self.forward = function
        except (TypeError, ValueError):  # written in C: it says nothing of its arguments
            self.forward = lambda *given: function(*given)  # noqa: PLW0108  that says: by position

"""The classes of configs that a file imports from its own package, read without importing them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from attnlab.errors import Refused, Unreadable
from attnlab.files import exists
from attnlab.records import UserEnvironment
from attnlab.target.config_objects import names_config
from attnlab.target.environment import find_module_file
from attnlab.target.outline import Definition, outline_code
from attnlab.target.source import parse, read_source

DEPTH = 3  # files from one to the next, as where a package's __init__ hands a name on


def imported_configs(path: Path, own: UserEnvironment, depth: int = DEPTH) -> dict[str, Definition]:
    """The config classes that the top level of a file imports by name, by their names there."""
    try:
        code = read_source(path)
        body = parse(code.text, code.file).body
    except (Refused, Unreadable, OSError):
        return {}
    found: dict[str, Definition] = {}
    for node in (node for node in body if isinstance(node, ast.ImportFrom)):
        names = {a.name: a.asname or a.name for a in node.names if names_config(a.name)}
        file = _file(node, path, own) if names and depth else None
        if file is not None:
            seen = dict(_classes(file, own, depth))
            found |= {
                here: replace(seen[there], name=here)
                for there, here in names.items()
                if there in seen
            }
    return found


def _classes(file: Path, own: UserEnvironment, depth: int) -> Iterator[tuple[str, Definition]]:
    yield from imported_configs(file, own, depth - 1).items()
    try:
        definitions = outline_code(read_source(file)).definitions
    except (Refused, Unreadable, OSError):
        return
    yield from ((name, d) for name, d in definitions.items() if d.kind == "class")


def _file(node: ast.ImportFrom, path: Path, own: UserEnvironment) -> Path | None:
    """The file of `from .config import Config`, or of a module below one of the user's folders."""
    if not node.level:
        file = find_module_file(node.module or "", own.sys_path)
        mine = file and any(file.is_relative_to(folder) for folder in own.sys_path)
        return file if mine else None
    below = [*path.absolute().parents][node.level - 1].joinpath(*(node.module or "").split("."))
    return next(filter(exists, (below / "__init__.py", below.with_suffix(".py"))), None)

"""Where a user's own code runs: its folder, its import path, and what it is started with."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from attnlab.files import exists
from attnlab.records import UserEnvironment
from attnlab.target.outline import Outline

CLIMB = 5  # folders above a file in which its own package may lie


def package_environment(path: Path, climbs: int) -> UserEnvironment | None:
    """A file with relative imports runs as a module of its package, whose root is found here."""
    if not climbs:
        return None
    folder = path.absolute().parent
    parts = [path.stem]
    while climbs > len(parts) - 1 or exists(folder / "__init__.py"):
        if folder.parent == folder:
            return None
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__":
        parts.pop()
    whole = all(part.isidentifier() for part in parts)
    return replace(user_environment(str(folder)), module=".".join(parts)) if whole else None


def find_module_file(module: str, first: tuple[str, ...]) -> Path | None:
    """The source of a module, found without importing its parents, as `find_spec` would."""
    below = Path(*module.split("."))
    places = (Path(entry, below) for entry in dict.fromkeys((*first, *sys.path)))
    paths = (path for p in places for path in (p / "__init__.py", p.with_suffix(".py")))
    return next(filter(exists, paths), None)


def with_package_roots(own: UserEnvironment, path: Path, outlined: Outline) -> UserEnvironment:
    """With the folders above a file from which its own package is imported, also below `src`."""
    found: list[str] = []
    for name in outlined.imports:
        if name in sys.stdlib_module_names or find_module_file(name, own.sys_path):
            continue
        folders = [*path.absolute().parents][:CLIMB]
        bases = [base for folder in folders for base in (folder, folder / "src")]
        found += [str(b) for b in bases if exists(b / f"{name}.py") or exists(b / name)][:1]
    return replace(own, sys_path=tuple(dict.fromkeys((*own.sys_path, *found))))


def user_environment(folder: str = "") -> UserEnvironment:
    """Where the user's code runs: like `python folder/file.py` in this shell."""
    cwd = str(Path.cwd())
    more = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [folder or cwd, cwd, *(str(Path(entry).absolute()) for entry in more if entry)]
    # A value that is not text cannot travel in a record.
    env = {key: value for key, value in os.environ.items() if _is_text(key + value)}
    return UserEnvironment(cwd=cwd, sys_path=tuple(dict.fromkeys(paths)), env=env)


def _is_text(said: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in said)

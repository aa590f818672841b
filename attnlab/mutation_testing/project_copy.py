"""A copy of the user's project, in which its tests may run and its module be changed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attnlab.errors import Refused
from attnlab.files import shown_folder, shown_path

ROOTS = ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini", ".git")
LEFT_OUT = {"__pycache__", "node_modules", "venv", "env", "build", "dist"}
MOST = 20_000  # files
LARGE = 8 << 20  # bytes; a larger file is linked to


def find_project(module: Path, tests: Path) -> Path:
    """The folder of the project that holds both: the nearest with a project's file, else the
    nearest that holds both."""
    common = Path(os.path.commonpath((module.parent, tests if tests.is_dir() else tests.parent)))
    for folder in (common, *common.parents):
        if folder == Path.home() or folder.parent == folder:
            break
        if any((folder / name).exists() for name in ROOTS):
            return folder
    return common


@contextmanager
def project_copies(root: Path, count: int) -> Iterator[list[Path]]:
    """So many copies of a project, for as long as they are used; raises `Refused`."""
    prefix = f"attnlab-worker-{os.getpid()}-"  # of one that is killed, the next worker removes it
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        copies = [Path(folder, str(number), root.name or "project") for number in range(count)]
        try:
            files = list(_files(root))
            for copy in copies:
                _copy(files, root, copy)
        except OSError as error:
            says = f"{shown_folder(root)} cannot be copied: {error.strerror or error}"
            raise Refused(
                says, "the tests run in a copy, so that nothing of yours changes"
            ) from None
        yield copies


def _files(root: Path) -> Iterator[Path]:
    count = 0
    for where, folders, names in os.walk(root):
        folders[:] = [n for n in folders if n[0] != "." and n not in LEFT_OUT]
        folders[:] = [n for n in folders if not Path(where, n, "pyvenv.cfg").exists()]
        for path in (Path(where, name) for name in names):
            if path.is_file():  # a socket or a broken link serves no test
                count += 1
                yield path
        if count > MOST:
            hint = "name a module and tests in a folder of their own, or add a pyproject.toml there"
            raise Refused(
                f"{shown_folder(root)} holds more than {MOST} files", hint, shown_path(root)
            )


def _copy(files: list[Path], root: Path, copy: Path) -> None:
    copy.mkdir(parents=True)
    for path in files:
        to = copy / path.relative_to(root)
        to.parent.mkdir(parents=True, exist_ok=True)
        if path.stat().st_size > LARGE:
            to.symlink_to(path)
        else:
            shutil.copy2(path, to)

"""Seed faults into a copy of attnlab and see which of them its tests catch.

    python -m benchmarks.faults [NAME ...]      some minutes on two cores; all without names

A fault is a file of `tests/faults/`: a text of one source file, what is put in its place, what that
breaks, and the tests that should see it. A test that fails without the fault does not count.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PARTS = ("attnlab", "benchmarks", "challenges", "docs", "tests", "pyproject.toml", "README.md")
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
Fault = dict[str, Any]


def load_faults(names: Sequence[str] = ()) -> dict[str, Fault]:
    """Faults by name."""
    files = sorted((ROOT / "tests" / "faults").glob("*.toml"))
    found = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in files}
    return {name: fault for name, fault in found.items() if not names or name in names}


def copied(folder: Path) -> Path:
    """A copy of the project with a Python that finds it before any other attnlab."""
    for part in PARTS:
        source, target = ROOT / part, folder / part
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
    venv.create(folder / ".venv", with_pip=False)
    libraries = sysconfig.get_path("purelib")
    packages = next((folder / ".venv").glob("lib/python*/site-packages"))
    (packages / "copy.pth").write_text(f"{folder}\n{libraries}\n", encoding="utf-8")
    return folder


def failures(folder: Path, tests: Sequence[str], *more: str) -> list[str]:
    """The tests that fail in a copy."""
    python = folder / ".venv" / "bin" / "python"
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests, *more]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=900
    )
    return FAILED.findall(done.stdout)


def caught(fault: Fault, folder: Path) -> str:
    """The first test that fails with the fault in the copy and not without; "" where none does."""
    path = folder / fault["file"]
    text = path.read_text(encoding="utf-8")
    assert text.count(fault["old"]) == 1, f"{path}: the text of the fault is not there once"
    unsound: list[str] = []
    while True:
        path.write_text(text.replace(fault["old"], fault["new"]), encoding="utf-8")
        try:
            skipped = [option for test in unsound for option in ("--deselect", test)]
            found = failures(folder, fault["tests"], "-x", *skipped)
        finally:
            path.write_text(text, encoding="utf-8")
        if not found or not failures(folder, [found[0]]):
            return next(iter(found), "")
        unsound.append(found[0])


def main(names: Sequence[str]) -> int:
    faults = load_faults(names)
    missed = []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        folders = [copied(Path(one)), copied(Path(two))]

        def run(name: str) -> tuple[str, str]:
            folder = folders.pop()
            try:
                return name, caught(faults[name], folder)
            finally:
                folders.append(folder)

        with ThreadPoolExecutor(len(folders)) as pool:
            for name, test in pool.map(run, faults):
                print(f"{name:32} {test or 'NOT CAUGHT'}", flush=True)
                missed += [] if test else [name]
    print(f"{len(faults) - len(missed)} of {len(faults)} faults are caught")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

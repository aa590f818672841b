"""Worked examples, every number of which is computed here, in plain Python.

A lesson is two files of this folder: NAME.toml has its texts, and NAME.py computes the `numbers()`
that stand in them. Its id is the file name with hyphens; nothing is registered.
"""

import importlib
from pathlib import Path
from typing import Any

from attnlab.errors import Refused
from attnlab.lessons.base import Lesson, make_lesson, read_texts
from attnlab.suggest import did_you_mean


def lesson_titles() -> dict[str, str]:
    """Every lesson's id and title."""
    return {name: str(texts["title"]) for name, texts in _texts().items()}


def find_lesson(what: str) -> Lesson:
    """The lesson of that id; `Refused` with near names where there is none."""
    known = _texts()
    if what not in known:
        hint = did_you_mean(what, known) or f"lessons are {', '.join(known)}"
        raise Refused(f'no lesson is called "{what}"', hint)
    module = importlib.import_module(f"{__name__}.{what.replace('-', '_')}")
    return make_lesson(what, known[what], module.numbers())


def _texts() -> dict[str, Any]:
    """The texts of all lessons, by their ids."""
    paths = sorted(Path(__file__).parent.glob("*.toml"))
    return {path.stem.replace("_", "-"): read_texts(path) for path in paths}

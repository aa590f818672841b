"""Worked examples, every number of which is computed here, in plain Python.

A lesson is one module in this folder. Its file name, with hyphens, is its id; it defines `TITLE`,
and `lesson()`, which gives the `Lesson` of that title. Nothing is registered.
"""

import importlib
import pkgutil
from typing import Any

from attnlab.errors import Refused
from attnlab.lessons.base import Lesson
from attnlab.suggest import did_you_mean


def lesson_titles() -> dict[str, str]:
    """Every lesson's id and title."""
    return {name: str(_module(name).TITLE) for name in _names()}


def find_lesson(what: str) -> Lesson:
    """The lesson of that id; `Refused` with near names where there is none."""
    if what in _names():
        made: Lesson = _module(what).lesson()
        return made
    hint = did_you_mean(what, _names()) or f"lessons are {', '.join(_names())}"
    raise Refused(f'no lesson is called "{what}"', hint)


def _names() -> list[str]:
    names = [m.name for m in pkgutil.iter_modules(__path__) if m.name != "base"]
    return [name.replace("_", "-") for name in names]


def _module(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")

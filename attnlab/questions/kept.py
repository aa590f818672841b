"""What is known of the shipped material: a question of it is asked at once, not after its runs.

Files of it are written by `python -m benchmarks.quiz --effects`. The key of an entry has digits of
all that it depends on, save for `effects.json`: where they have changed since, it is found anew.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from attnlab.records import from_json, to_json

if TYPE_CHECKING:
    from attnlab.records.program import ProgramJob

R = TypeVar("R")
RUNS = Path(__file__).with_name("runs.json")
SHORT = 12  # digits


def find_entry(file: Path, key: str, kind: type[R]) -> R | None:
    """What a file knows under a key; entries stand one on a line, and no other is read."""
    text, begin = _text_of(file), f"\n{to_json(key)}: "
    start = text.find(begin) + len(begin)
    found = text[start : text.find("\n", start)] if start >= len(begin) else ""
    return from_json(kind, found.rstrip(",")) if found else None


def all_entries(file: Path, kind: type[R]) -> dict[str, R]:
    """All that a file knows, by key."""
    found: dict[str, R] = from_json(dict[str, kind], _text_of(file) or "{}")  # type: ignore[valid-type]
    return found


@cache
def _text_of(file: Path) -> str:
    return file.read_text("utf-8") if file.exists() else ""


def short_digest(whole: object) -> str:
    """Digits that change with anything of it."""
    return hashlib.sha256(repr(whole).encode()).hexdigest()[:SHORT]


def run_key(job: ProgramJob) -> str:
    """What the run of a program depends on: how it trains, and its files."""
    whole = (job.program.training, sorted(job.files.items()))
    return f"{job.program.slug} {short_digest(whole)}"

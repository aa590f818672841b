"""The head of every page about one challenge."""

from __future__ import annotations

from attnlab.records import Challenge
from attnlab.render.screen import Screen, level_marks


def show_head(challenge: Challenge, screen: Screen, file: str = "") -> None:
    """Slug and title, and below them what kind it is, how hard, and which file is meant."""
    marks = screen.marks
    screen.say((challenge.title, "title"))
    words = f"{challenge.kind}  level {level_marks(marks, challenge.level)}"
    screen.say((challenge.slug, "name"), f"  {words}", f"  {file}" if file else "")

"""docs/architecture.md: what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURE = PAGE.split("```")[1]
NAMED = sorted(set(re.findall(r"`((?:attnlab|challenges|tests)/[\w/.]*)`", PAGE)))
DRAWN = sorted(
    set(re.findall(r"\b([a-z_]+(?:/[a-z_]*)*(?:/|\.py))", PICTURE)) - {"buggy.py", "my.py"}
)


@pytest.mark.parametrize("name", NAMED)
def test_what_the_table_names_exists(name):
    """A room that moved must not leave its old name behind on the page."""
    assert (ROOT / name).exists()


@pytest.mark.parametrize("name", DRAWN)
def test_what_the_picture_names_exists(name):
    """The picture speaks of rooms and files of the package."""
    assert (ROOT / "attnlab" / name).exists()


def test_every_room_is_on_the_page():
    """A room that nobody can find is no room."""
    rooms = {p.parent.name for p in (ROOT / "attnlab").glob("*/__init__.py")}
    missing = {room for room in rooms if f"{room}/" not in PAGE and f"`{room}`" not in PAGE}
    assert not missing
    assert len(NAMED) >= 15
    assert len(DRAWN) >= 10

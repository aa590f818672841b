"""Grade what a class handed in: one verdict for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnlab.commands.batch.grade import grade
from attnlab.commands.batch.merge import merge
from attnlab.commands.batch.show import show

if TYPE_CHECKING:
    from collections.abc import Callable

PLACE = 190
COMMANDS: dict[str, Callable[..., int]] = {"grade": grade, "show": show, "merge": merge}

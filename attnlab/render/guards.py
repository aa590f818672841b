"""The relations of sizes that a run depends on, as symbolic shapes found them."""

from __future__ import annotations

from collections.abc import Sequence

from attnlab.records.trace import Guard
from attnlab.render.place import format_place
from attnlab.render.screen import Screen, escape_control, plural, truncate


def show_guards(guards: Sequence[Guard], screen: Screen) -> None:
    screen.gap()
    screen.say(
        ("sizes", "title"), f"  the run depends on {plural(len(guards), 'relation')} of sizes:"
    )
    wide = max(len(guard.relation) for guard in guards)
    spots = [format_place(guard.file, guard.line) if guard.line else "" for guard in guards]
    far = max(len(spot) for spot in spots)
    for guard, spot in zip(guards, spots, strict=True):
        rest = f"{spot:<{far}}  {guard.op}  " if guard.op else f"{spot:<{far}}  "
        room = max(0, screen.width - wide - len(rest) - 4)
        source = truncate(escape_control(guard.source), room, screen.marks.dots)
        screen.one_line((f"  {guard.relation:<{wide}}  ", "name"), rest, (source, "aside"))

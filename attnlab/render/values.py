"""The values of a tensor that was asked for by name or line: two of its axes as a heat map."""

from __future__ import annotations

import math
from collections.abc import Sequence

from attnlab.records.position import Picture
from attnlab.records.trace import Heat
from attnlab.render.formats import format_number
from attnlab.render.heat import has_colors, not_finite_mark, show_heat
from attnlab.render.screen import Screen, escape_control
from attnlab.suggest import either

DIGITS = 6  # rows and columns up to which the numbers themselves are shown


def heat_picture(heat: Heat) -> Picture | None:
    """What a heat map draws; None where there is no finite number."""
    if not any(math.isfinite(value) for row in heat.rows for value in row):
        return None
    down, across = (name or word for name, word in zip(heat.axes, ("row", "column"), strict=True))
    return Picture(
        title=escape_control(heat.title),
        down=down,
        across=across,
        shape=(len(heat.rows), len(heat.rows[0])),
        rows=tuple(range(len(heat.rows))),
        columns=tuple(range(len(heat.rows[0]))),
        values=heat.rows,
    )


def show_values(values: Sequence[Heat], screen: Screen) -> None:
    for heat in values:
        screen.gap()
        drawn = heat_picture(heat)
        if drawn is None:
            screen.say((escape_control(heat.title), "title"), ": no finite number in it")
            continue
        show_heat(drawn, screen)
        odd = [value for row in heat.rows for value in row if not math.isfinite(value)]
        if odd:
            kinds = either(dict.fromkeys(format_number(value) for value in odd))
            mark = "grey" if has_colors(screen) else not_finite_mark(screen)
            screen.say((f"{mark}: {kinds} ({len(odd)} of the values)", "aside"))
        if heat.cut:
            screen.say(("there is more of it than is drawn", "aside"))
        if len(heat.rows) <= DIGITS and len(heat.rows[0]) <= DIGITS:
            _show_numbers(heat, screen)


def _show_numbers(heat: Heat, screen: Screen) -> None:
    texts = [[format_number(value) for value in row] for row in heat.rows]
    wide = max(len(text) for row in texts for text in row)
    for row in texts:
        screen.one_line("  " + "  ".join(f"{text:>{wide}}" for text in row))

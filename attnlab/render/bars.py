"""A curve as bars: eighths of a block upwards, halves downwards, `#` where there are none."""

import math
from collections.abc import Sequence
from typing import TypeVar

from attnlab.render.screen import ASCII, Screen

N = TypeVar("N", int, float)
HEIGHT = 8  # lines
WIDEST_BAR = 4
UP = " ▁▂▃▄▅▆▇█"
DOWN = " ▀█"
LETTERS = " #"
SPARKS = 48  # characters of a curve at most
ASCII_SPARKS = " .:-=+*#"


def show_bars(xs: Sequence[int], ys: Sequence[float], screen: Screen) -> Sequence[int]:
    """One bar for each x, or for every n-th where the screen is too narrow: those are returned."""
    low, high = min(*ys, 0.0), max(*ys, 0.0)
    above = _lines_above(low, high)
    labels = _labels(low, high, above)
    margin = max(map(len, labels)) + 2
    room = max(1, screen.width - margin)
    xs, ys = every_nth(xs, room), every_nth(ys, room)
    wide = max(1, min(WIDEST_BAR, room // len(xs)))
    edge = "|" if screen.marks is ASCII else "│"
    for label, line in zip(labels, _bar_lines(ys, (low, high), above, screen), strict=True):
        drawn = "".join(mark * wide for mark in line).rstrip()
        screen.one_line((f"{label:>{margin - 2}} {edge}", "aside"), (drawn, "name"))
    screen.one_line((" " * margin + ruler(xs, wide), "aside"))
    return xs


def every_nth(items: Sequence[N], most: int) -> Sequence[N]:
    """Every n-th, so that no more than `most` are left."""
    return items[:: -(-len(items) // most)]


def ruler(numbers: Sequence[int], wide: int) -> str:
    """Numbers under their cells, as many as have room."""
    text = ""
    for at in range(0, len(numbers), max(1, 8 // wide)):
        text = text.ljust(at * wide) + str(numbers[at])
    return text


def subset_label(noun: str, shown: Sequence[int], count: int) -> str:
    """`queries 0, 2, 4, ... of 64`."""
    several = "queries" if noun == "query" else f"{noun}s"
    return f"{several} {', '.join(map(str, shown[:3]))}, ... of {count}"


def _lines_above(low: float, high: float) -> int:
    """How many of the lines are over zero: at least one for each sign there is."""
    if low >= 0:
        return HEIGHT
    return max(1, min(HEIGHT - 1, round(high / (high - low) * HEIGHT))) if high > 0 else 0


def _labels(low: float, high: float, above: int) -> list[str]:
    """The greatest value on top, the least at the bottom, zero at the lower edge of its line."""
    labels = [""] * HEIGHT
    labels[max(0, above - 1)] = "0"
    if high > 0:
        labels[0] = f"{high:.3g}"
    if low < 0:
        labels[-1] = f"{low:.3g}"
    return labels


def _bar_lines(
    ys: Sequence[float], bounds: tuple[float, float], above: int, screen: Screen
) -> list[str]:
    low, high = bounds
    below = HEIGHT - above
    unit = max(high / above if above else 0.0, -low / below if below else 0.0) or 1.0
    plain = screen.marks is ASCII
    lines = [_bar_line(ys, unit, r, LETTERS if plain else UP) for r in reversed(range(above))]
    fallen = [-y for y in ys]
    return lines + [_bar_line(fallen, unit, r, LETTERS if plain else DOWN) for r in range(below)]


def _bar_line(ys: Sequence[float], unit: float, row: int, marks: str) -> str:
    """The part of each bar that lies in the row-th line from zero."""
    parts = (min(max(y / unit - row, 0.0), 1.0) for y in ys)
    return "".join(marks[round(part * (len(marks) - 1))] for part in parts)


def sparkline(values: Sequence[float], screen: Screen) -> str:
    """A curve in one line, its largest value a whole block; what is no number is a cross."""
    marks = ASCII_SPARKS if screen.marks is ASCII else UP[1:]
    few = every_nth(values, min(SPARKS, max(screen.width - 30, 8)))
    finite = [value for value in few if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    span = high - low or 1.0
    return "".join(
        marks[round((value - low) / span * (len(marks) - 1))] if math.isfinite(value) else "x"
        for value in few
    )

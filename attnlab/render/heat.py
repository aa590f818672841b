"""A matrix as a heat map: two rows a line in colour, shaded characters where there is none.

Pale is zero (or what is nearest to it), blue is below and orange above: a pair that colour-blind
eyes tell apart. Cells are filled all over, so the background of the terminal does not matter.
"""

from collections.abc import Sequence
from functools import cache
from math import isfinite

from rich.color import Color
from rich.style import Style
from rich.text import Text

from attnlab.records import Heat, record
from attnlab.records.position import Picture
from attnlab.render.bars import every_nth, ruler, subset_label
from attnlab.render.formats import format_number
from attnlab.render.screen import ASCII, Screen, escape_control
from attnlab.suggest import either

COLOR_STOPS = ((24, 69, 140), (92, 150, 201), (240, 238, 232), (232, 148, 60), (158, 72, 0))
GREY = (112, 112, 112)
NOT_FINITE = 99  # in place of a level: no finite number
LEVELS = 32  # of colour, on each side of zero
FAINT = 4  # of them, the least that is seen beside the palest
SHADES = " ░▒▓█"
LETTERS = " .:-=+*#%@"
MOST_LINES = 32
DIGITS = 6  # rows and columns up to which the numbers themselves are shown
WIDEST_CELL = 4
Part = str | tuple[str, str] | Text


@record
class Scale:
    """What the ends of the colours mean. Where values have both signs, the middle is zero."""

    low: float
    high: float
    floored: bool = False  # whatever is above `low` is told apart from it

    def level(self, value: float) -> int:
        """-LEVELS ... LEVELS; values of one sign use one half, from the end nearer to zero."""
        span = (self.high - self.low) or 1.0
        if self.low >= 0:
            level = round((value - self.low) / span * LEVELS)
            return max(level, FAINT) if self.floored and value > self.low else level
        if self.high <= 0:
            return round((value - self.high) / span * LEVELS)
        return round(value / self.high * LEVELS)

    def shade(self, value: float, ramp: str) -> str:
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        if self.floored:
            return ramp[min(1 + int(part * (len(ramp) - 1)), len(ramp) - 1) if part > 0 else 0]
        return ramp[min(int(part * len(ramp)), len(ramp) - 1)]


@record
class HeatMap:
    """A map as lines of text, and what of the matrix they show."""

    lines: tuple[Text, ...]
    margin: int
    rows: Sequence[int]
    columns: Sequence[int]
    scale: Scale


def show_heat(picture: Picture, screen: Screen) -> None:
    """What it is and what is left out, the map with its rulers, what the colours mean."""
    drawn = draw_heat(picture, screen, screen.width)
    _show_title(picture, drawn.rows, drawn.columns, screen)
    for line in drawn.lines:
        _line(screen, line)
    _line(screen, " " * drawn.margin, *legend(drawn.scale, screen))


def draw_heat(
    picture: Picture, screen: Screen, width: int, scale: Scale | None = None, most: int = MOST_LINES
) -> HeatMap:
    """The map with its rulers, in at most `width` cells and `most` lines."""
    coloured = has_colors(screen)
    per_line = 2 if coloured else 1
    margin = len(str(picture.rows[-1])) + 1
    room = max(1, width - margin)
    rows = every_nth(picture.rows, most * per_line)
    columns = every_nth(picture.columns, room)
    down, across = picture.rows.index, picture.columns.index
    values = [[picture.values[down(r)][across(c)] for c in columns] for r in rows]
    wide = max(1, min(WIDEST_CELL, room // len(columns)))
    scale = scale or fit_scale(values)
    lines = []
    for at in range(0, len(rows), per_line):
        some = values[at : at + per_line]
        cells = (
            _color_cells(some, scale, wide)
            if coloured
            else _shade_cells(some[0], scale, wide, screen)
        )
        lines.append(Text.assemble((f"{rows[at]:>{margin - 1}} ", "aside"), cells))
    lines.append(Text.assemble((" " * margin + ruler(columns, wide), "aside")))
    return HeatMap(lines=tuple(lines), margin=margin, rows=rows, columns=columns, scale=scale)


def has_colors(screen: Screen) -> bool:
    """Sixteen colours are too few for it, and half blocks need UTF-8."""
    many = screen.color_system in ("256", "truecolor")
    return many and not screen.no_color and screen.marks is not ASCII


def _line(screen: Screen, *parts: Part) -> None:
    screen.print(Text.assemble(*parts), no_wrap=True, crop=True, overflow="crop")


def fit_scale(values: Sequence[Sequence[float]]) -> Scale:
    """From the least to the greatest, as wide on both sides of zero."""
    known = [value for row in values for value in row if isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if low < 0 < high:
        return Scale(low=-max(-low, high), high=max(-low, high))
    return Scale(low=low, high=high)


def _color_cells(lines: list[list[float]], scale: Scale, wide: int) -> Text:
    """One row, or two above each other: the upper half block and what is behind it."""
    levels = [[scale.level(v) if isfinite(v) else NOT_FINITE for v in line] for line in lines]
    return Text.assemble(*(("▀" * wide, _style(*cell)) for cell in zip(*levels, strict=True)))


@cache
def _style(up: int, down: int | None = None) -> Style:
    return Style(color=_level_color(up), bgcolor=None if down is None else _level_color(down))


def _level_color(level: int) -> Color:
    return Color.from_rgb(*level_rgb(level))


def level_rgb(level: int) -> Sequence[int]:
    """Mixed of the two nearest stops."""
    if level == NOT_FINITE:
        return GREY
    place = (level / LEVELS + 1) / 2 * (len(COLOR_STOPS) - 1)
    at = min(int(place), len(COLOR_STOPS) - 2)
    mixed = (
        a + (b - a) * (place - at)
        for a, b in zip(COLOR_STOPS[at], COLOR_STOPS[at + 1], strict=True)
    )
    return tuple(round(part) for part in mixed)


def _shade_cells(line: list[float], scale: Scale, wide: int, screen: Screen) -> str:
    ramp = _ramp(screen)
    hole = not_finite_mark(screen)
    marks = (scale.shade(value, ramp) if isfinite(value) else hole for value in line)
    return "".join(mark * wide for mark in marks)


def not_finite_mark(screen: Screen) -> str:
    """What stands for -inf, inf and NaN, where there are no colours."""
    return "x" if screen.marks is ASCII else "·"


def _ramp(screen: Screen) -> str:
    return LETTERS if screen.marks is ASCII else SHADES


# ---------------------------------------------------------------- around the map


def _show_title(
    picture: Picture, rows: Sequence[int], columns: Sequence[int], screen: Screen
) -> None:
    """Which rows and columns are shown is said where it is not all of them."""
    screen.say((picture.title, "title"), f": {picture.down} (down) by {picture.across} (across)")
    left_out = [
        subset_label(name, shown, count)
        for name, shown, count in zip(
            (picture.down, picture.across), (rows, columns), picture.shape, strict=True
        )
        if len(shown) < count
    ]
    if left_out:
        screen.say(("only " + " and ".join(left_out), "aside"))


def legend(scale: Scale, screen: Screen) -> list[Part]:
    low, high = f"{scale.low + 0.0:.3g} ", f" {scale.high + 0.0:.3g}"  # no -0
    if not has_colors(screen):
        return [f"{low}[{''.join(mark * 2 for mark in _ramp(screen))}]{high}"]
    steps = [scale.low + (scale.high - scale.low) * i / 20 for i in range(21)]
    return [low, Text.assemble(*(("█", _style(scale.level(v))) for v in steps)), high]


# ---------------------------------------------------------------- values asked for by name


def heat_picture(heat: Heat) -> Picture | None:
    """What a heat map draws; None where there is no finite number."""
    if not any(isfinite(value) for row in heat.rows for value in row):
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
        odd = [value for row in heat.rows for value in row if not isfinite(value)]
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

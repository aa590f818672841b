"""Points of a plane in braille, eight to a character; `*` where there is none."""

from collections.abc import Sequence

from attnlab.render.screen import ASCII, Screen

BRAILLE = 0x2800
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # by row and column of a character
Point = tuple[float, float]


def scatter_lines(points: Sequence[Point], screen: Screen, width: int, height: int) -> list[str]:
    """The points drawn in `height` lines of `width` characters, first and last marked 0 and n.

    Both axes have one scale: a circle stays a circle on a terminal whose characters are twice as
    high as wide.
    """
    across, down = (1, 1) if screen.marks is ASCII else (2, 4)
    columns, rows = width * across, height * down
    cells = [[0] * width for _ in range(height)]
    lows = [min(axis) for axis in zip(*points, strict=True)]
    spans = [max(axis) - min(axis) for axis in zip(*points, strict=True)]
    stretch = down / across / 2  # how much wider than high the room of a dot is counted
    unit = max(spans[0] / max(columns - 1, 1), spans[1] * stretch / max(rows - 1, 1)) or 1.0
    places = [
        (round((x - lows[0]) / unit), rows - 1 - round((y - lows[1]) * stretch / unit))
        for x, y in points
    ]
    for x, y in places:
        cells[y // down][x // across] |= 1 if down == 1 else DOTS[y % 4][x % 2]
    text = [[_mark(dots, down == 1) for dots in row] for row in cells]
    for (x, y), name in zip((places[0], places[-1]), ("0", "n"), strict=True):
        text[y // down][x // across] = name
    return ["".join(row).rstrip() for row in text]


def _mark(dots: int, plain: bool) -> str:
    if not dots:
        return " "
    return "*" if plain else chr(BRAILLE + dots)

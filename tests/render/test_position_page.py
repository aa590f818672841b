"""Portraits as pages: maps and bars in colour, in characters, in ASCII."""

import io
import math
from dataclasses import replace

import pytest
from rich.cells import cell_len

from attnlab.records.position import (
    Curve,
    Frequency,
    Picture,
    PositionJob,
    PositionReport,
    RotationTest,
    Statistic,
)
from attnlab.render.bars import ruler, show_bars
from attnlab.render.heat import Scale, show_heat
from attnlab.render.position import PositionPage
from attnlab.render.screen import Screen


def picture(rows: int, columns: int, scale: float = 1.0, **more) -> Picture:
    """Slow waves to the right, as of a table."""
    values = tuple(
        tuple(scale * math.sin(r * 0.8 ** (c // 2) + (c % 2) * math.pi / 2) for c in range(columns))
        for r in range(rows)
    )
    facts = {
        "title": "the table",
        "down": "position",
        "across": "column",
        "shape": (rows, columns),
        "rows": tuple(range(rows)),
        "columns": tuple(range(columns)),
        "values": values,
    }
    return Picture(**{**facts, **more})


def curve(ys, count=0, spread=0.0) -> Curve:
    ys = tuple(ys)
    return Curve(
        title="dot product of two rows, by distance",
        count=count or len(ys),
        distances=tuple(range(len(ys))),
        values=ys,
        spread=spread,
    )


WAVES = tuple(
    Frequency(pair=i, columns=(2 * i, 2 * i + 1), frequency=0.8**i, wavelength=2 * math.pi / 0.8**i)
    for i in range(12)
)
SINES = PositionPage(
    job=PositionJob(kind="sinusoidal", dim=24, length=40),
    report=PositionReport(
        formula=("PE[p, 2i] = sin(p w_i)",),
        pictures=(picture(40, 24),),
        frequencies=WAVES,
        curve=curve((12 * math.cos(k / 9) ** 2 for k in range(40)), spread=3e-15),
        statistics=(Statistic(id="norm_min", text="norm of the shortest row", value=3.4641016),),
        rotation=(
            RotationTest(offset=1, error=3e-16, holds=True),
            RotationTest(offset=5, error=0.25, holds=False),
        ),
        notes=("a note",),
    ),
)
BIAS = PositionPage(
    job=PositionJob(kind="alibi", heads=14, length=300),
    report=PositionReport(
        formula=("score[i, j] = q_i . k_j - m_h |i - j|",),
        pictures=(
            replace(
                picture(60, 100),
                down="query",
                across="key",
                shape=(300, 300),
                rows=tuple(range(0, 300, 5)),
                columns=tuple(range(0, 300, 3)),
                values=tuple(
                    tuple(-abs(5.0 * r - 3.0 * c) / 2 for c in range(100)) for r in range(60)
                ),
            ),
        ),
        curve=curve((-k / 2 for k in range(300)), spread=0.7),
        statistics=tuple(
            Statistic(id=f"slope_{h}", text=f"slope m of head {h}", value=0.5**h) for h in range(14)
        ),
    ),
)
PAGES = {"position": SINES, "position-bias": BIAS}


def coloured(page, monkeypatch, width: int = 80, depth: str = "truecolor") -> str:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color" if depth else "xterm")
    monkeypatch.setenv("COLORTERM", "truecolor" if depth == "truecolor" else "")
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    page.show(Screen(file=file, width=width, color=True))
    file.seek(0)
    return file.read()


class Map:
    def __init__(self, picture: Picture) -> None:
        self.picture = picture

    def show(self, screen) -> None:
        show_heat(self.picture, screen)


class Bars:
    def __init__(self, ys, xs=None) -> None:
        self.ys = tuple(ys)
        self.xs = tuple(xs or range(len(self.ys)))

    def show(self, screen) -> None:
        self.shown = show_bars(self.xs, self.ys, screen)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", PAGES)
def test_page_is_as_it_was(name, width, golden, shown):
    """A change of any page is seen, and looked at, before it is kept."""
    golden(f"{name}-{width}", shown(PAGES[name], width))


@pytest.mark.parametrize("width", [30, 50, 79, 81, 200])
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_the_screen(name, width, shown):
    """Nothing but a command, which is not broken, is left to the terminal to wrap."""
    lines = (line for line in shown(PAGES[name], width).splitlines() if "attnlab " not in line)
    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("name", PAGES)
def test_ascii_terminal_gets_ascii(name, shown):
    """Maps, bars and marks have a form for terminals that are not UTF-8."""
    text = shown(PAGES[name], encoding="ascii")
    assert text.isascii()
    assert "[  ..::--==++**##%%@@]" in text
    assert "|" in text
    assert "####" in text


def test_characters_tell_the_values(shown):
    """From blank to full, lowest to highest, with a legend that says so."""
    ramp = picture(1, 5, shape=(1, 5), values=((-1.0, -0.5, 0.0, 0.5, 1.0),))
    lines = shown(Map(ramp)).splitlines()
    assert lines[1].startswith("0     ░░░░▒▒▒▒▓▓▓▓████")
    assert lines[-1].strip() == "-1 [  ░░▒▒▓▓██] 1"


def test_colours_show_two_rows_a_line(monkeypatch):
    """Upper half blocks, the lower row behind them; an odd last row has nothing behind it."""
    ends = picture(3, 2, values=((-1.0, 0.0), (1.0, -1.0), (0.0, 1.0)))
    lines = coloured(Map(ends), monkeypatch).splitlines()
    blue, pale, orange = "24;69;140", "240;238;232", "158;72;0"
    assert f"\x1b[38;2;{blue};48;2;{orange}m▀▀▀▀" in lines[1]
    assert f"\x1b[38;2;{pale};48;2;{blue}m▀▀▀▀" in lines[1]
    assert f"\x1b[38;2;{pale}m▀▀▀▀" in lines[2]
    assert len(lines) == 5


def test_few_colours_get_characters(monkeypatch):
    """Sixteen colours cannot show a map; 256 can."""
    assert "▀" not in coloured(Map(picture(9, 9)), monkeypatch, depth="")
    assert "▀" in coloured(Map(picture(9, 9)), monkeypatch, depth="256")


def test_no_color_is_honoured(monkeypatch):
    """With NO_COLOR in the environment not one colour code is written."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("NO_COLOR", "1")
    file = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    SINES.show(Screen(file=file, width=80, color=True))
    file.seek(0)
    text = file.read()
    assert "38;2" not in text
    assert "▀" not in text
    assert "█" in text


def test_what_is_left_out_is_said(shown):
    """Rows and columns that do not fit are sampled, and the title says which are shown."""
    lines = shown(Map(picture(100, 150))).splitlines()
    assert lines[1] == "only positions 0, 4, 8, ... of 100 and columns 0, 2, 4, ... of 150"
    assert len(lines) == 2 + 25 + 2
    assert "only" not in shown(Map(picture(30, 20)))
    text = shown(Map(BIAS.report.pictures[0]))
    assert "only queries 0, 10, 20, ... of 300 and keys 0, 6, 12, ... of 300" in text


@pytest.mark.parametrize(
    ("low", "high", "levels"),
    [(-1.0, 1.0, (-32, 0, 32)), (0.0, 4.0, (0, 16, 32)), (-4.0, 0.0, (-32, -16, 0))],
)
def test_the_scale(low, high, levels):
    """Both signs meet in the pale middle; one sign uses one half, zero (or the nearest) is pale."""
    scale = Scale(low=low, high=high)
    assert tuple(map(scale.level, (low, (low + high) / 2, high))) == levels
    assert Scale(low=3.0, high=3.0).level(3.0) == 0
    floored = Scale(low=0.0, high=1.0, floored=True)
    assert (floored.level(0.0), floored.level(0.01)) == (0, 4)
    assert [floored.shade(v, " ab") for v in (0.0, 0.01, 0.6, 1.0)] == [" ", "a", "b", "b"]
    assert Scale(low=3.0, high=3.0).shade(3.0, "ab") == "a"


def test_a_large_offset_does_not_drown_the_differences(shown):
    """Values far from zero, of one sign, use the whole ramp."""
    far = picture(1, 2, values=((23.0, 32.0),))
    assert shown(Map(far)).splitlines()[1] == "0     ████"


def test_bars_stand_on_zero(shown):
    """The first is full, one of half the height is half; labels are top and zero."""
    lines = shown(Bars((8.0, 4.0, 0.5, 0.0))).splitlines()
    assert lines[0].rstrip() == "8 │████"
    assert lines[4].rstrip() == "  │████████"
    assert lines[7].rstrip() == "0 │████████▄▄▄▄"
    assert lines[8].rstrip() == "   0       2"


def test_bars_hang_from_zero(shown):
    """Negative values: zero on top, halves of a block."""
    lines = shown(Bars((0.0, -4.0, -8.0, -0.5))).splitlines()
    assert lines[0].rstrip() == " 0 │    ████████▀▀▀▀"
    assert lines[3].rstrip() == "   │    ████████"
    assert lines[7].rstrip() == "-8 │        ████"


def test_bars_of_both_signs(shown):
    """Zero stands where they part, and every sign has a line at least."""
    lines = shown(Bars((9.0, -0.1, 3.0))).splitlines()
    assert lines[0].startswith("   9 │████")
    assert lines[6].startswith("   0 │████")
    assert lines[7].startswith("-0.1 │")
    assert shown(Bars((0.0, 0.0))).splitlines()[0].startswith("  │")


def test_bars_that_do_not_fit_are_sampled(shown):
    """Every n-th, with the numbers under them; the caller learns which."""
    bars = Bars(range(1000))
    shown(bars, 80)
    assert bars.shown == tuple(range(0, 1000, 14))
    assert "only distances 0, 5, 10, ... of 300" in shown(BIAS)


def test_the_ruler_has_room_between_numbers():
    """At least eight cells for each."""
    assert ruler((0, 1, 2, 3), 4) == "0       2"
    assert ruler(tuple(range(0, 90, 5)), 1) == "0       40      80"


def test_the_verdict_on_distance(shown):
    """Alone, or not, in words."""
    assert "it depends on distance alone (to 3e-15)" in shown(SINES)
    assert "they differ by up to 0.7, so distance alone does not" in " ".join(shown(BIAS).split())
    exact = replace(SINES, report=replace(SINES.report, curve=curve((1.0, 2.0))))
    assert "it depends on distance alone\n" in shown(exact).replace(" \n", "\n")


def test_long_tables_are_cut_and_say_so(shown):
    """Ten rows, the first and the last of frequencies among them; the document has all."""
    text = shown(SINES)
    assert "10 of 12; --json has all" in text
    assert " 22, 23 " in text
    assert "10 of 14; --json has all" in shown(BIAS)
    assert len(SINES.document()["frequencies"]) == 12
    assert len(BIAS.document()["statistics"]) == 14


def test_documents():
    """Sizes, and the report's parts under their names."""
    document = SINES.document()
    assert (document["kind"], document["dim"], document["length"]) == ("sinusoidal", 24, 40)
    assert document["statistics"] == {"norm_min": 3.4641016}
    assert document["rotation"][0] == {"offset": 1, "error": 3e-16, "holds": True}
    assert document["distance"]["spread"] == 3e-15
    assert document["pictures"][0]["shape"] == [40, 24]

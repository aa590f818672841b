"""The table of a trace: one row a line, columns dropped and never wrapped."""

from dataclasses import replace

import pytest
from sample_records import INF, NAN, OPS, TRACE, op

from attnlab.records import Op, Trace
from attnlab.render.formats import format_number, format_place, value_range
from attnlab.render.screen import Marks, truncate
from attnlab.render.steps import flags, show_table


class Table:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def show(self, screen) -> None:
        show_table(self.trace, screen)


@pytest.fixture
def lines(shown):
    return lambda trace, width=80: [
        line.rstrip() for line in shown(Table(trace), width).splitlines()
    ]


@pytest.mark.parametrize("width", [30, 50, 80, 100, 160])
def test_one_line_for_each_row(lines, width):
    """However narrow the screen, a row is a line, and the crash comes last."""
    found = lines(TRACE, width)
    assert len(found) == 1 + len(OPS) + 1
    assert " 31 " in found[-1]


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (130, "line op axes shape range flags source"),
        (80, "line op axes shape source"),
        (60, "line op axes shape"),
        (40, "line op axes shape"),
    ],
)
def test_columns_go_the_least_important_first(lines, width, titles):
    """Line, operation and shape are the last to go."""
    assert lines(TRACE, width)[0].split() == titles.split()


def test_nan_is_shown_on_a_narrow_screen(lines):
    """An illness is flagged where there is no room for other flags."""
    trace = replace(
        TRACE, ops=(*OPS, op(16, 30, "div", "x / 0", "B", "2", nan=True, min=NAN, max=NAN))
    )
    assert "flags" in lines(trace, 60)[0]
    assert any("NaN" in line for line in lines(trace, 60))


def test_minus_inf_of_a_mask_is_no_illness(lines):
    """The -inf that a mask puts there takes no room from the source on a narrow screen."""
    assert "flags" not in lines(TRACE, 80)[0]


def test_source_is_said_once_for_each_line(lines):
    """Rows of one source line read as one group."""
    assert sum("chunk(3" in line for line in lines(TRACE, 130)) == 1


def test_findings_mark_their_rows(lines):
    """A warning stands in the margin of the row that it is about; a note does not."""
    marked = [line for line in lines(TRACE) if line.startswith("!")]
    assert len(marked) == 1
    assert "masked_fill" in marked[0]


def test_unnamed_axes_leave_no_column(lines):
    """Where no axis has a name, the sizes are not shown twice."""
    plain = Trace(ops=(op(0, 1, "add", "x + y", "2 3", "2 3"),))
    assert lines(plain)[0].split() == ["line", "op", "shape", "range", "source"]
    assert Marks().times.join("23") in lines(plain)[1]


def test_other_files_are_named(lines):
    """A line number alone is of the file that most rows come from."""
    other = replace(OPS[0], file="pkg/other.py", line=7)
    assert any("other:7" in line for line in lines(Trace(ops=(*OPS, other)), 120))
    assert format_place("pkg/other.py", 7, {"pkg/other.py": ""}) == "7"


def test_nothing_ran(lines):
    """An empty trace is said in words."""
    assert lines(Trace()) == ["no operation ran"]


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-1.2345, 3.3939, "-1.23 … 3.39"),
        (0.0, 0.0, "0"),
        (-INF, 1.0, "-inf … 1"),
        (NAN, NAN, "NaN"),
        (None, None, ""),
        (1e-9, 123456.0, "1e-09 … 1.23e+05"),
    ],
)
def test_ranges_read_at_a_glance(low, high, text):
    """Three digits, and one number where there is only one."""
    assert value_range(replace(OPS[0], min=low, max=high), Marks().dots) == text


def test_flags_name_what_is_special():
    """A float32 tensor that is no view has none."""
    odd: Op = replace(OPS[0], nan=True, inf=True, dtype="float64", view=True)
    assert flags(odd) == "NaN Inf float64 view"
    turned = replace(OPS[0], shape=(2, 3), stride=(1, 2), view=True, nan=False, inf=False)
    assert flags(turned) == "non-contig"  # view would raise
    assert flags(turned, brief=True) == ""  # too little room, unless memory was asked for
    assert flags(replace(turned, bytes=0), brief=True) == "non-contig"
    assert flags(replace(turned, shape=(2, 1), stride=(1, 7))) == "view"
    assert flags(OPS[0]) == ""
    assert format_number(INF) == "inf"


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("a\n  b", 9, "a b"),
        ("数据数据", 5, "数据…"),
        ("abc", 0, ""),
    ],
)
def test_fit_crops_to_cells(text, width, fitted):
    """Wide characters count twice, line breaks are blanks."""
    assert truncate(text, width) == fitted


def test_the_source_stays_longer_than_the_range(lines):
    """Where one of the two has to go, it is the range: the source is what one reads."""
    for width in range(60, 121):
        head = lines(TRACE, width)[0]
        assert "source" in head or "range" not in head, width

"""The pieces of a trace: the table of operations, the crash below it, the findings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from attnlab.records import Crash, Finding, Op, Operand, Report, Trace, record
from attnlab.render.screen import Marks, Screen, fit

GAP = 2  # blank cells between two columns
SOURCE = 24  # a source column narrower than this says too little
ALL = 100  # from this width on every flag is shown


Part = str | tuple[str, str]


@record
class Row:
    """One line of the table, all of it text."""

    mark: str
    line: str
    op: str
    axes: str
    shape: str
    source: str
    range: str
    flags: str
    ill: bool = False
    style: str = ""


@record
class Column:
    name: str
    title: str
    least: int = 0  # cells below which the column is dropped; 0 = as wide as its longest text
    right: bool = False


LINE = Column(name="line", title="line", right=True)
OP = Column(name="op", title="op")
AXES = Column(name="axes", title="axes")
SHAPE = Column(name="shape", title="shape")
SOURCE_CODE = Column(name="source", title="source", least=SOURCE)
RANGE = Column(name="range", title="range", right=True)
FLAGS = Column(name="flags", title="flags")
MARK = Column(name="mark", title="")
ORDER = (MARK, LINE, OP, AXES, SHAPE, RANGE, FLAGS, SOURCE_CODE)  # from left to right
WORTH = (LINE, OP, AXES, SHAPE, MARK, SOURCE_CODE, RANGE, FLAGS)  # the last ones go first


def show_target(target: str, sizes: Mapping[str, int], screen: Screen, *before: Part) -> None:
    """What was built, and what the names of its axes stand for."""
    known = " ".join(f"{name}={size}" for name, size in sizes.items())
    screen.say(*before, target, *([(f"  {known}", "name")] if known else []))


def show_table(trace: Trace, screen: Screen) -> None:
    """One row for each operation, one terminal line for each row."""
    rows = _rows(trace, screen.marks, brief=screen.width < ALL)
    if not rows:
        screen.say(("no operation ran", "aside"))
        return
    widths, dots = _widths(rows, screen.width), screen.marks.dots
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
    for column in ORDER:
        if column in widths:
            table.add_column(
                column.title,
                width=widths[column],
                no_wrap=True,
                justify="right" if column.right else "left",
            )
    for row in rows:
        cells = (_cell(row, column, widths, dots) for column in ORDER if column in widths)
        table.add_row(*cells, style=row.style)
    screen.print(table)


def _cell(row: Row, column: Column, widths: dict[Column, int], dots: str) -> Text:
    style = {AXES: "name", MARK: "warn", FLAGS: "warn" if row.ill else ""}.get(column, "")
    style = "" if row.style == "bad" else style  # a row in red is red all over
    return Text(fit(getattr(row, column.name), widths[column], dots), style=style)


def _widths(rows: Sequence[Row], width: int) -> dict[Column, int]:
    """The columns that fit, and how wide each is: the least important are dropped, none wraps."""
    full = {c: max(_longest(rows, c.name), cell_len(c.title)) for c in WORTH}
    ill = any(row.ill for row in rows)
    used: list[Column] = []
    for column in sorted(WORTH, key=lambda c: 3.5 if ill and c is FLAGS else WORTH.index(c)):
        wanted = bool(_longest(rows, column.name))
        if wanted and (len(used) < 3 or _need([*used, column], full) <= width):
            used.append(column)
    room = width - _need(used, full) + sum(c.least for c in used)
    widths = {c: min(full[c], room) if c.least else full[c] for c in used}
    spill = _need(used, full) - width
    if spill > 0:  # too narrow even for these: the last one is cropped
        widths[used[-1]] = max(1, widths[used[-1]] - spill)
    return widths


def _need(columns: Sequence[Column], full: dict[Column, int]) -> int:
    return sum(c.least or full[c] for c in columns) + GAP * (len(columns) - 1)


def _longest(rows: Sequence[Row], name: str) -> int:
    return max((cell_len(getattr(row, name)) for row in rows), default=0)


def _rows(trace: Trace, marks: Marks, brief: bool) -> list[Row]:
    home = main_file(trace)
    named = any(not axis.isdigit() for op in trace.ops for axis in op.axes)
    flagged = {f.index for f in trace.findings if f.index is not None and f.severity != "note"}
    rows = []
    last = ""
    for op in trace.ops:
        here = place(op.file, op.line, home)
        rows.append(
            Row(
                mark=marks.warn if op.index in flagged else "",
                line=here,
                op=op.op,
                axes=" ".join(op.axes) if named else "",
                shape=shape(op.shape, marks) or "scalar",
                source="" if here == last else op.source,  # said once for all rows of a line
                range=span(op, marks),
                flags=flags(op, brief),
                ill=ill(op),
                style="bold" if op.index in flagged else "",
            )
        )
        last = here
    if trace.crash:
        rows.append(_crash_row(trace.crash, home, marks))
    return rows


def _crash_row(crash: Crash, home: str, marks: Marks) -> Row:
    return Row(
        mark=marks.bad,
        line=place(crash.file, crash.line, home),
        op=crash.op or crash.error,
        axes="crashed",
        shape="",
        source=crash.source,
        range="",
        flags="",
        style="bad",
    )


def main_file(trace: Trace) -> str:
    """The file that most operations come from: the others are named, this one is not."""
    files = Counter(op.file for op in trace.ops)
    crash = trace.crash.file if trace.crash else ""
    return files.most_common(1)[0][0] if files else crash


def place(file: str, line: int, home: str) -> str:
    name = file.replace("\\", "/").rpartition("/")[2]
    return str(line) if file in (home, "") else f"{name}:{line}"


def shape(sizes: Sequence[int], marks: Marks) -> str:
    return marks.times.join(str(size) for size in sizes)


def ill(op: Op) -> bool:
    return op.nan or (op.inf and op.max == math.inf)


def span(op: Op, marks: Marks) -> str:
    if op.min is None or op.max is None:
        return ""
    low, high = number(op.min), number(op.max)
    return low if low == high else f"{low} {marks.dots} {high}"


def number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.3g}"


def flags(op: Op, brief: bool = False) -> str:
    """What is special about a tensor; `brief` leaves only what may be an illness."""
    found = ["NaN"] * op.nan + ["Inf"] * op.inf
    if brief:  # -inf is what a mask leaves behind, and the range of wide screens shows it
        return " ".join(found) if ill(op) else ""
    if op.dtype != "float32":
        found.append(op.dtype)
    return " ".join(found + ["view"] * op.view)


# ---------------------------------------------------------------- below the table


def show_crash(crash: Crash, screen: Screen) -> None:
    """The box the eye should land on: what raised, on what, and what that means."""
    marks = screen.marks
    body = Text()
    if crash.source:
        body.append(fit(crash.source, screen.width - 4, marks.dots) + "\n\n", style="bold")
    for text in _operands(crash.operands, marks):
        body.append(text + "\n")
    if crash.operands:
        body.append("\n")
    body.append(crash.message.strip())
    if crash.explanation:
        body.append("\n" + crash.explanation.strip())
    where = place(crash.file, crash.line, "")
    head = f"{marks.bad} {crash.error or 'Error'} at {where}"
    title = Text(fit(head, screen.width - 6, marks.dots), style="bad")
    screen.print(Panel(body, title=title, title_align="left", border_style="bad", expand=True))


def show_end(trace: Trace, report: Report, screen: Screen) -> None:
    """What ended the run before its end, if anything did."""
    if trace.crash:
        screen.gap()
        show_crash(trace.crash, screen)
    elif report.outcome != "ok":
        screen.gap()
        screen.hang((f"{screen.marks.bad} {report.outcome}  ", "bad"), report.message)


def _operands(operands: Sequence[Operand], marks: Marks) -> list[str]:
    names = [" ".join(o.axes) or "scalar" for o in operands]
    wide = max((cell_len(name) for name in names), default=0)
    pairs = zip(names, operands, strict=True)
    return [
        f"operand {number}  {name:<{wide}}  {shape(operand.shape, marks)}"
        for number, (name, operand) in enumerate(pairs, 1)
    ]


def show_findings(findings: Sequence[Finding], screen: Screen) -> None:
    """What the trace noticed, the gravest first."""
    rank = {"error": 0, "warning": 1, "note": 2}
    for finding in sorted(findings, key=lambda f: rank[f.severity]):
        mark, style = _severity(finding, screen.marks)
        place_ = f"line {finding.line}" if finding.line else ""
        head = [f"{mark} {finding.severity}"] + [t for t in (place_, finding.op) if t]
        screen.say((" ".join(head), style), ("  " + finding.rule, "aside"))
        screen.say(finding.message, indent=2)


def _severity(finding: Finding, marks: Marks) -> tuple[str, str]:
    if finding.severity == "note":
        return marks.note, "bold"
    return (marks.bad, "bad") if finding.severity == "error" else (marks.warn, "warn")


def show_notes(notes: Sequence[str], screen: Screen) -> None:
    """What the trace could not see, and why."""
    for text in notes:
        screen.say((f"{screen.marks.note} {text}", "aside"))

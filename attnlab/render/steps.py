"""The table of a trace: one row for each operation, one terminal line for each row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.text import Text

from attnlab.records import Crash, Op, Trace, record
from attnlab.records.trace import Kernel
from attnlab.render.fold import Shown, Step, View, arrange_rows, levels
from attnlab.render.formats import (
    file_labels,
    format_lines,
    format_number,
    format_place,
    format_seconds,
    format_shape,
    has_nan_or_inf,
    value_range,
)
from attnlab.render.screen import ASCII, Marks, Screen, bare_table, escape_control, truncate
from attnlab.sizes import format_bytes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rich.table import Table

GAP = 2  # blank cells between two columns
SOURCE = 16  # a source column narrower than this says too little
COMFORTABLE_SOURCE = 24  # cells of source that are kept before there is a range
MODULE = 12
ALL_FLAGS_WIDTH = 100  # from this width on every flag is shown
PLAIN = View(fold=False)

Part = str | tuple[str, str]


@record
class Row:
    """One line of the table, all of it text."""

    mark: str = ""
    line: str = ""
    op: str = ""
    axes: str = ""
    shape: str = ""
    source: str = ""
    range: str = ""
    flags: str = ""
    module: str = ""
    time: str = ""
    bytes: str = ""
    grad: str = ""
    ill: bool = False
    style: str = ""


# The columns by the fields of a row, from left to right, with their titles.
TITLES = {
    "mark": "",
    "line": "line",
    "op": "op",
    "axes": "axes",
    "shape": "shape",
    "time": "time",
    "bytes": "bytes",
    "grad": "gradient",
    "range": "range",
    "flags": "flags",
    "module": "module",
    "source": "source",
}
RIGHT = {"line", "time", "bytes", "grad", "range"}
LEAST = {"source": SOURCE, "module": MODULE}  # cells below which a column is dropped
# From what goes last to what goes first where there is no room.
WORTH = (
    *("line", "op", "time", "bytes", "grad", "axes", "shape", "mark", "source", "range", "flags"),
    "module",
)
ALWAYS = 3
MOST = {"op": 20, "axes": 30}  # cells, below the width at which there is room for any name
WIDE = 140


@record
class Frame:
    """What all rows of a table have in common."""

    marks: Marks
    names: dict[str, str]  # of the files, where there are several
    named: bool  # any axis has a name
    brief: bool
    nested: bool  # submodules of submodules: their names say more than the source
    layer: str = ""  # the first of the layers alike that the row is inside of
    depth: int = 0  # how many there are around each other


def show_target(target: str, sizes: Mapping[str, int], screen: Screen, *before: Part) -> None:
    """What was built, and what the names of its axes stand for: below, where both are long."""
    known = " ".join(f"{name}={size}" for name, size in sizes.items())
    head = "".join(part if isinstance(part, str) else part[0] for part in before)
    if cell_len(f"{head}{target}  {known}") <= screen.width or not before:
        screen.say(*before, target, *([(f"  {known}", "name")] if known else []))
        return
    screen.hang((head, "title"), target)
    if known:
        screen.hang(" " * cell_len(head), (known, "name"))


def show_table(trace: Trace, screen: Screen, view: View = PLAIN) -> None:
    """One row for each operation, or for what stands for several."""
    lines = _lines(trace, view, screen)
    if not lines:
        none = "no row has a finding" if view.only_findings else "no such operation ran"
        screen.say((none if trace.ops else "no operation ran", "aside"))
        return
    rows = [line for line in lines if isinstance(line, Row)]
    widths, dots = _widths(rows, screen.width), screen.marks.dots
    table = _table(widths, titles=True)
    for line in lines:
        if isinstance(line, Row):
            cells = (_cell(line, column, widths, dots) for column in TITLES if column in widths)
            table.add_row(*cells, style=line.style)
            continue
        if table.row_count or table.show_header:
            screen.print(table)
        screen.print(Text(truncate(line, screen.width, dots), style="aside"))
        table = _table(widths, titles=False)
    if table.row_count:
        screen.print(table)


def _table(widths: Mapping[str, int], *, titles: bool) -> Table:
    table = bare_table(gap=GAP)
    table.show_header = titles
    for name, title in TITLES.items():
        if name in widths:
            side: Literal["left", "right"] = "right" if name in RIGHT else "left"
            table.add_column(title, width=widths[name], no_wrap=True, justify=side)
    return table


def _cell(row: Row, name: str, widths: Mapping[str, int], dots: str) -> Text:
    style = {"axes": "name", "mark": "warn", "flags": "warn" if row.ill else ""}.get(name, "")
    if row.style in ("bad", "aside"):  # a row in red is red all over
        style = ""
    if name == "mark" and row.mark[:1] in ("│", "|"):
        style = "aside"
    text = escape_control(getattr(row, name))
    if name == "module" and cell_len(text) > widths[name]:  # its end tells more than its beginning
        return Text(dots + text[len(dots) - widths[name] :], style=style)
    return Text(truncate(text, widths[name], dots), style=style)


def _widths(rows: Sequence[Row], width: int) -> dict[str, int]:
    """The columns that fit, and how wide each is: the least important are dropped, none wraps."""
    longest = {c: max((cell_len(getattr(row, c)) for row in rows), default=0) for c in WORTH}
    full = {c: max(longest[c], cell_len(TITLES[c])) for c in WORTH}
    if width < WIDE:
        full = {c: min(full[c], MOST.get(c, width)) for c in WORTH}
    asked = any(row.ill or row.bytes for row in rows)  # for the layout, beside bytes
    least = {c: LEAST.get(c, full[c]) for c in WORTH}
    used: list[str] = []
    for column in sorted(WORTH, key=lambda c: 6.5 if asked and c == "flags" else WORTH.index(c)):
        if column == "range" and "source" not in used and longest["source"]:
            continue  # the source is what one reads: no range in its place
        room = width - (COMFORTABLE_SOURCE - SOURCE) * ("source" in used)
        fits = len(used) < ALWAYS or _total([least[c] for c in (*used, column)]) <= room
        if longest[column] and fits:
            used.append(column)
    widths = {c: least[c] for c in used}
    for column in [c for c in used if c in LEAST]:  # what is left goes to those that can use it
        room = max(0, width - _total(widths.values()))
        widths[column] = min(full[column], widths[column] + room)
    spill = _total(widths.values()) - width
    if spill > 0:  # too narrow even for these: the last one is cropped
        widths[used[-1]] = max(1, widths[used[-1]] - spill)
    return widths


def _total(widths: Collection[int]) -> int:
    """The cells of columns beside each other."""
    return sum(widths) + GAP * (len(widths) - 1)


# ---------------------------------------------------------------- rows


def _lines(trace: Trace, view: View, screen: Screen) -> list[Row | str]:
    frame = Frame(
        marks=screen.marks,
        names=file_labels(trace, view.file),
        named=any(not axis.isdigit() for op in trace.ops for axis in op.axes),
        brief=screen.width < ALL_FLAGS_WIDTH,
        nested=any(len(levels(op.module)) > 1 for op in trace.ops),
    )
    lines = [line for item in arrange_rows(trace, view) for line in _item(item, frame)]
    if trace.crash and not trace.calls:  # else it is that of a later call
        lines.append(_crash_row(trace.crash, frame))
    return _drop_repeated_sources(lines)


def _drop_repeated_sources(lines: Sequence[Row | str]) -> list[Row | str]:
    """The source of a line is said once for all its rows, so that they read as a group.

    Text in place of a row is a heading over rows that stand for more.
    """
    found: list[Row | str] = []
    last = ("", "")
    for line in lines:
        if isinstance(line, str):
            found.append(line)
            last = ("", "")
            continue
        same = (line.line, line.source) == last and line.style != "bad"
        found.append(replace(line, source="") if same else line)
        last = (line.line, line.source) if line.line else last
    return found


def _item(item: Shown, frame: Frame) -> Iterator[Row | str]:
    if isinstance(item, Step):
        yield _row(item, frame)
        yield from (_kernel_row(kernel, frame) for kernel in item.op.kernels if not item.call)
        return
    edge = _edge(frame) + ("|" if frame.marks is ASCII else "╭")
    names = f"{_part(item.first, frame)} {frame.marks.dots} {_part(item.last, frame)}"
    if not item.first:
        lines = dict.fromkeys(item.lines)
        names = format_lines(_first_op(item).file, lines, frame.names, "-")
    but = " but for sizes" if item.sizes_differ else ""
    yield f"{edge} {names}: {item.times} times alike{but}, shown once"
    inner = replace(frame, depth=frame.depth + 1, layer=item.first or frame.layer)
    yield from (line for step in item.steps for line in _item(step, inner))


def _first_op(item: Shown) -> Op:
    return item.op if isinstance(item, Step) else _first_op(item.steps[0])


def _row(step: Step, frame: Frame) -> Row:
    op, marks = step.op, frame.marks
    measured = step if step.call else op
    return Row(
        mark=marks.warn if step.flagged else _edge(frame),
        line=format_place(op.file, op.line, frame.names),
        op=(_part(step.call, frame) or step.call) if step.call else op.op,
        axes=_axes(step, frame) if frame.named else "",
        shape=format_shape(op.shape, marks) or "scalar",
        source=op.source if step.rows == 1 else f"({step.rows} operations)",
        range=value_range(op, marks.dots),
        flags=flags(op, frame.brief),
        module="" if step.call else _part(op.module, frame),
        time=format_seconds(measured.seconds),
        bytes=format_bytes(measured.bytes),
        grad="" if op.grad is None else format_number(op.grad),
        ill=has_nan_or_inf(op),
        style="bold" if step.flagged else "",
    )


def _edge(frame: Frame) -> str:
    return ("|" if frame.marks is ASCII else "│") * frame.depth


def _part(module: str, frame: Frame) -> str:
    """The submodule, from the layer on that is named above it."""
    inside = frame.layer and f"{module}.".startswith(f"{frame.layer}.")
    return (module[len(frame.layer) + 1 :] if inside else module) if frame.nested else ""


def _axes(step: Step, frame: Frame) -> str:
    arrow = "->" if frame.marks is ASCII else "→"
    out = " ".join(step.op.axes)
    return f"{' '.join(step.took)} {arrow} {out}" if step.call and step.took else out


def _kernel_row(kernel: Kernel, frame: Frame) -> Row:
    return Row(
        op=f"  {kernel.op}",
        shape=format_shape(kernel.shape, frame.marks) or "scalar",
        flags="" if kernel.dtype == "float32" else kernel.dtype,
        style="aside",
    )


def _crash_row(crash: Crash, frame: Frame) -> Row:
    return Row(
        mark=frame.marks.bad,
        line=format_place(crash.file, crash.line, frame.names),
        op=crash.op or crash.error,
        axes="crashed",
        source=crash.source,
        module=crash.module if frame.nested else "",
        style="bad",
    )


def flags(op: Op, brief: bool = False) -> str:
    """What is special about a tensor; `brief` keeps NaN, +inf and, beside bytes, the layout."""
    found = ["NaN"] * op.nan + ["Inf"] * op.inf
    if brief:  # -inf is what a mask leaves behind, and the range of wide screens shows it
        found = found if has_nan_or_inf(op) else []
        layout = ["non-contig"] if op.bytes is not None and not op.contiguous else []
        return " ".join(found + layout)
    if op.dtype != "float32":
        found.append(op.dtype)
    if not op.contiguous:
        found.append("non-contig")
    return " ".join(found + ["view"] * (op.view and op.contiguous))

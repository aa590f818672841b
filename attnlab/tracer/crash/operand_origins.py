"""Where the operands of an operation that raised came from, and the axes that did not meet."""

from collections.abc import Iterator, Sequence

from attnlab.records.trace import Op
from attnlab.tracer.axes.agree import Axes
from attnlab.tracer.findings import Rows
from attnlab.tracer.raw_trace import RawCrash, place_of

SLICES = {"getitem", "narrow", "index_select", "select", "slice"}


def operand_origins(
    rows: Rows, crash: RawCrash, names: Sequence[Axes], odd: Sequence[int | None]
) -> Iterator[str]:
    """One sentence for each of the first two operands that an operation made; `odd` is the axis of
    each that does not fit, `names` are those of the operands' axes."""
    made = list(_rows_of_operands(rows, crash))[:2]
    alone = len(crash.operands) == 1
    for at, op in enumerate(made):
        if op is None or (at and op is made[0]):
            continue
        which = "That" if alone else ("The first", "The second")[at]
        axis = odd[at] if at < len(odd) else None
        if at and axis is None:  # nothing is odd about it
            continue
        other = odd[1 - at] if axis is not None else None
        meets = names[1 - at][other] if other is not None else ""
        yield (
            f"{which} operand was made by {op.op} {place_of(op, crash.file)}"
            f"{_of_axis(rows, op, axis, meets, crash.file)}."
        )


def _rows_of_operands(rows: Rows, crash: RawCrash) -> Iterator[Op | None]:
    """The row that made each operand; None for an input and for a weight."""
    parents = list(crash.parents)
    for shape in crash.operands:
        if parents and rows.shape(parents[0]) == shape:
            row = parents.pop(0)
            yield rows.raw.ops[row] if row >= 0 else None
        else:
            yield None


def _of_axis(rows: Rows, op: Op, axis: int | None, meets: str, file: str) -> str:
    """Which operation first made this axis, of what it is a slice, and what it should have met."""
    if axis is None:
        return ""
    first = _origin(rows, op, axis)
    name, size = rows.axes[op.index][axis], op.shape[axis]
    told = f"its axis {name}"
    cut = _cut_from(rows, first, size)
    if cut:
        where = "" if first is op else f" by {first.op} {place_of(first, file)}"
        return f"; {told} was cut from one of {cut}{where}, where {meets or 'the other'} is needed"
    return "" if first is op else f"; {told} comes from {first.op} {place_of(first, file)}"


def _cut_from(rows: Rows, op: Op, size: int) -> int:
    """The size of the axis that a slice was cut from; 0 where it is none."""
    if op.op not in SLICES or not (before := rows.raw.operands[op.index]):
        return 0
    gone = [n for n in before[0] if n not in op.shape]
    return gone[0] if len(gone) == 1 and gone[0] > size else 0


def _origin(rows: Rows, op: Op, axis: int) -> Op:
    """The first row that has this axis: by its name, and by its size."""
    name, size = rows.axes[op.index][axis], op.shape[axis]
    while True:
        above = [rows.raw.ops[p] for p in op.parents if p >= 0]
        with_it = [o for o in above if (name, size) in _pairs(rows, o.index)]
        given = any((name, size) in _pairs(rows, p) for p in op.parents if p < 0)
        if not with_it or given:
            return op
        op = with_it[0]


def _pairs(rows: Rows, row: int) -> list[tuple[str, int]]:
    return list(zip(rows.named(row), rows.shape(row), strict=True))

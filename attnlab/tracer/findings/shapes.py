"""Findings from shapes: silent broadcasts, idle squeezes, leftover axes."""

from collections.abc import Iterator

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.base import Rows, show
from attnlab.tracer.raw_trace import finding_at

# Operations that combine whole tensors by broadcasting.
ELEMENTWISE = {
    *("add", "sub", "mul", "div", "true_divide", "rsub", "radd", "rmul", "rtruediv", "truediv"),
    *("masked_fill", "where", "maximum", "minimum", "pow", "eq", "ne"),
}
SPLITS = {"chunk", "split", "tensor_split", "split_with_sizes", "narrow"}
# Operations that make an axis of size 1 because the author asked for it.
MAKERS = {"unsqueeze", "getitem", "view", "reshape", "unflatten", "expand"}


def broadcasts(rows: Rows) -> Iterator[Finding]:
    for op in rows.raw.ops:
        grown = _grown(rows, op)
        if grown is None:
            continue
        parent, axis = grown
        others = " and ".join(show(rows.named(p)) for p in op.parents if p != parent)
        yield finding_at(
            op,
            "silent-broadcast",
            f"silent broadcast: {show(rows.named(parent))} met {others} and the result "
            f"{show(rows.axes[op.index])} is larger than every operand: axis {axis} grew "
            f"from 1 to {rows.axes[op.index][axis]}, which the data already has",
        )


def _grown(rows: Rows, op: Op) -> tuple[int, int] | None:
    """The data operand that grew by accident, and the axis of the result that grew.

    An accident: the operands have different ranks, so they were lined up from the right by
    PyTorch and not by the author; the result is larger than each of them; and the axis that
    grew is one that the data has already. Not an accident: an axis that was made for the
    purpose on the way to this very operation, and an outer product with a table's vector.
    """
    known = [p for p in op.parents if len(rows.shape(p)) > 0]
    grown = all(rows.shape(p) != op.shape for p in known)
    if op.op not in ELEMENTWISE or len(known) < 2 or not grown:
        return None
    ranks = {len(rows.shape(p)) for p in known}
    data = [p for p in known if p in rows.data and len(rows.shape(p)) == len(op.shape)]
    if len(ranks) < 2 or not data or rows.raw.ops[data[0]].op in MAKERS:
        return None
    if all(p in rows.free and len(rows.shape(p)) == 1 for p in known if p != data[0]):
        return None
    names = {n.rstrip("'") for n in rows.named(data[0])}
    for axis, (before, after) in enumerate(zip(rows.shape(data[0]), op.shape, strict=True)):
        name = rows.axes[op.index][axis].rstrip("'")
        same = name in names or (name == str(after) and after in rows.shape(data[0]))
        if before == 1 and after > 1 and same:
            return data[0], axis
    return None


# ---------------------------------------------------------------- axes of size 1 left over


def idle_squeezes(rows: Rows) -> Iterator[Finding]:
    for op in rows.raw.ops:
        if op.op not in {"squeeze", "squeeze_"} or not op.parents:
            continue
        if rows.shape(op.parents[0]) == op.shape:
            yield finding_at(
                op,
                "squeeze-did-nothing",
                f"squeeze left {show(rows.named(op.parents[0]))} as it was: "
                "it removes an axis only where its size is 1",
                "note",
            )


def leftovers(rows: Rows) -> Iterator[Finding]:
    """A split that left an axis of size 1, when a broadcast or the crash descends from it."""
    starts = [rows.raw.ops[f.index].parents for f in broadcasts(rows) if f.index is not None]
    if rows.raw.crash is not None:
        starts.append(rows.raw.crash.parents)
    for start in starts:
        for op in rows.ancestors(start):
            if op.op not in SPLITS or not op.parents:
                continue
            before = rows.shape(op.parents[0])
            new = [i for i, n in enumerate(op.shape) if n == 1 and before[i] > 1]
            if new:
                yield from _same_line(rows, op, new[0])


def _same_line(rows: Rows, op: Op, axis: int) -> Iterator[Finding]:
    """One finding for the several outputs of one split: at the first of them."""
    first = next(
        o for o in rows.raw.ops if (o.line, o.op, o.parents) == (op.line, op.op, op.parents)
    )
    yield finding_at(
        first,
        "leftover-axis",
        f"{op.op} cut axis {axis} of {show(rows.named(op.parents[0]))} into pieces of size 1 and "
        f"kept it: each piece is {show(rows.axes[op.index])}, one axis more than its meaning "
        "needs, and whatever meets it later lines up one axis off",
    )

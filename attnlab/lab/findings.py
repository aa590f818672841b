"""What a trace gives away: silent broadcasts, leftover axes, the origin of NaN and of infinities.

Each rule is a function of the rows; a rule that is not sure says nothing. Severity: `error` for a
value that is broken, `warning` for a shape that is most likely an accident, `note` for a fact that
explains another finding and is harmless alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attnlab.lab.axes import Axes
from attnlab.lab.raw import RawTrace, Shape
from attnlab.records import Finding, Op, Severity

# Operations that write -inf (or inf) on purpose: a mask is no overflow.
FILLS = {
    *("masked_fill", "masked_fill_", "where", "full", "full_like", "new_full", "fill_"),
    *("tensor", "setitem", "scalar_tensor", "index_fill", "index_fill_", "masked_scatter"),
}
# Operations that combine whole tensors by broadcasting.
ELEMENTWISE = {
    *("add", "sub", "mul", "div", "true_divide", "rsub", "radd", "rmul", "rtruediv", "truediv"),
    *("masked_fill", "where", "maximum", "minimum", "pow", "eq", "ne"),
}
# Operations through which data becomes features: what descends from one is no mask any more.
MIXERS = {
    *("linear", "matmul", "bmm", "einsum", "embedding", "conv1d", "conv2d"),
    *("layer_norm", "baddbmm"),
}
DIVISIONS = {
    *("div", "div_", "divide", "true_divide", "truediv", "rtruediv", "itruediv", "rdiv"),
    *("reciprocal", "reciprocal_", "rsqrt", "rsqrt_", "pow", "rpow"),
}
SPLITS = {"chunk", "split", "tensor_split", "split_with_sizes", "narrow"}
# Operations that make an axis of size 1 because the author asked for it.
MAKERS = {"unsqueeze", "getitem", "view", "reshape", "unflatten", "expand"}
REMOVERS = {"squeeze", "squeeze_", "select", "getitem", "unbind"}


class Rows:
    """The rows with their names and their descent."""

    def __init__(self, raw: RawTrace, axes: Sequence[Axes], inputs: Sequence[Axes]) -> None:
        self.raw = raw
        self.axes = axes
        self.inputs = inputs
        self.data: set[int] = set()  # rows with the model's data, as against masks and tables
        self.free: set[int] = set()  # rows that descend from factories alone
        for op in raw.ops:
            if any(p in self.data for p in op.parents) or (op.op in MIXERS and op.parents):
                self.data.add(op.index)
            if len(op.parents) == len(raw.operands[op.index]) and self.free.issuperset(op.parents):
                self.free.add(op.index)

    def made(self, op: Op) -> bool:
        """Every operand of `op` is the output of a row."""
        return len(self.raw.operands[op.index]) == sum(p >= 0 for p in op.parents)

    def shape(self, parent: int) -> Shape:
        return self.raw.ops[parent].shape if parent >= 0 else self.raw.inputs[-1 - parent]

    def named(self, parent: int) -> Axes:
        return self.axes[parent] if parent >= 0 else self.inputs[-1 - parent]

    def back(self, start: Sequence[int]) -> Iterator[Op]:
        """Rows that `start` descends from, latest first, up to those that took an axis away."""
        todo = {p for p in start if p >= 0}
        while todo:
            row = max(todo)
            todo.discard(row)
            op = self.raw.ops[row]
            yield op
            first = self.raw.operands[op.index][:1]
            if op.op not in REMOVERS or not first or len(op.shape) >= len(first[0]):
                todo |= {p for p in op.parents if p >= 0}


def find(rows: Rows) -> tuple[Finding, ...]:
    """All findings, in the order of their rows."""
    found: dict[tuple[str, int | None], Finding] = {}
    for rule in (_broadcasts, _idle_squeezes, _leftovers, _nan_origin, _overflows):
        for finding in rule(rows):
            found.setdefault((finding.rule, finding.index), finding)
    return tuple(sorted(found.values(), key=lambda f: f.index if f.index is not None else -1))


def _finding(op: Op, rule: str, severity: Severity, message: str) -> Finding:
    return Finding(
        rule=rule,
        file=op.file,
        line=op.line,
        op=op.op,
        severity=severity,
        message=message,
        index=op.index,
    )


def show(axes: Sequence[str]) -> str:
    return f"({', '.join(axes)})"


# ---------------------------------------------------------------- silent broadcasts


def _broadcasts(rows: Rows) -> Iterator[Finding]:
    for op in rows.raw.ops:
        grown = _grown(rows, op)
        if grown is None:
            continue
        parent, axis = grown
        others = " and ".join(show(rows.named(p)) for p in op.parents if p != parent)
        yield _finding(
            op,
            "silent-broadcast",
            "warning",
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
    if op.op not in ELEMENTWISE or len(known) < 2:
        return None
    if any(rows.shape(p) == op.shape for p in known):
        return None
    ranks = {len(rows.shape(p)) for p in known}
    data = [p for p in known if p in rows.data and len(rows.shape(p)) == len(op.shape)]
    if len(ranks) < 2 or not data or rows.raw.ops[data[0]].op in MAKERS:
        return None
    if all(p in rows.free and len(rows.shape(p)) == 1 for p in known if p != data[0]):
        return None
    names, result = rows.named(data[0]), rows.axes[op.index]
    for axis, (before, after) in enumerate(zip(rows.shape(data[0]), op.shape, strict=True)):
        if before == 1 and after > 1 and result[axis] in names:
            return data[0], axis
    return None


# ---------------------------------------------------------------- axes of size 1 left over


def _idle_squeezes(rows: Rows) -> Iterator[Finding]:
    for op in rows.raw.ops:
        if op.op not in {"squeeze", "squeeze_"} or not op.parents:
            continue
        shape = rows.shape(op.parents[0])
        if shape == op.shape:
            yield _finding(
                op,
                "squeeze-did-nothing",
                "note",
                f"squeeze left {show(rows.named(op.parents[0]))} as it was: "
                "it removes an axis only where its size is 1",
            )


def _leftovers(rows: Rows) -> Iterator[Finding]:
    """A split that left an axis of size 1, when a broadcast or the crash descends from it."""
    starts = [rows.raw.ops[f.index].parents for f in _broadcasts(rows) if f.index is not None]
    if rows.raw.fall is not None:
        starts.append(rows.raw.fall.parents)
    for start in starts:
        for op in rows.back(start):
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
    yield _finding(
        first,
        "leftover-axis",
        "warning",
        f"{op.op} cut axis {axis} of {show(rows.named(op.parents[0]))} into pieces of size 1 and "
        f"kept it: each piece is {show(rows.axes[op.index])}, one axis more than its meaning "
        "needs, and whatever meets it later lines up one axis off",
    )


# ---------------------------------------------------------------- NaN and infinity


def _nan_origin(rows: Rows) -> Iterator[Finding]:
    """The first NaN; only a note where nothing of it is left at the end."""
    ops = rows.raw.ops
    for op in ops:
        if op.nan and not any(p >= 0 and ops[p].nan for p in op.parents):
            lasts = ops[-1].nan or rows.raw.fall is not None
            message = _nan_message(rows, op)
            if not lasts:
                message += "; nothing of it is left in the last row"
            yield _finding(op, "nan-origin", "error" if lasts else "note", message)
            return


def _nan_message(rows: Rows, op: Op) -> str:
    masked, tainted = rows.raw.masked, rows.raw.tainted
    if masked is not None and masked.row == op.index:
        where = ", ".join(str(i) for i in masked.first)
        many = f"{masked.count} rows have" if masked.count > 1 else "1 row has"
        return (
            f"first NaN: {op.op} over a row that is -inf everywhere is 0/0. {many} every key "
            f"masked, the first is row [{where}] of {show(rows.axes[op.index])}"
        )
    operands = rows.raw.operands[op.index]
    if tainted and 0 <= tainted[0] < len(operands):
        return (
            f"first NaN: {op.op} took it from its operand {tainted[0] + 1}, of shape "
            f"{operands[tainted[0]]}, which no operation of this run made: look for a NaN in the "
            "inputs, weights and buffers"
        )
    infinite = [p for p in op.parents if p >= 0 and rows.raw.ops[p].inf]
    if infinite:
        source = rows.raw.ops[infinite[0]]
        return (
            f"first NaN: {op.op} took an infinity from {source.op} (line {source.line}); "
            "inf - inf, 0 * inf and inf / inf are NaN"
        )
    if tainted is not None or rows.made(op):
        return f"first NaN: {op.op} made it from tensors that had none"
    return f"first NaN: {op.op} made it, or took it from a weight or an input"


def _overflows(rows: Rows) -> Iterator[Finding]:
    """The first positive infinity that no mask put there."""
    ops = rows.raw.ops
    for op in ops:
        legal = op.op in FILLS or op.view or any(p >= 0 and ops[p].inf for p in op.parents)
        if op.max == float("inf") and not op.nan and not legal:
            made = "divided by zero" if op.op in DIVISIONS else f"made more than {op.dtype} holds"
            if not rows.made(op):
                made += ", unless a weight or an input held one"
            yield _finding(op, "infinity-origin", "warning", f"first infinity: {op.op} {made}")
            return

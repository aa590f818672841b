"""Findings from values: NaN, infinities, weights that do not sum to 1, values that say little."""

import math
from collections.abc import Iterator, Sequence

from attnlab.records.trace import Finding, Op
from attnlab.tracer.barred_rows import Barred
from attnlab.tracer.findings.base import CONTRACTIONS, SCORES, SOFTMAX, Rows, show
from attnlab.tracer.raw_trace import Measured, finding_at, line_of, place_of

# Operations that write -inf (or inf) on purpose: a mask is no overflow.
FILLS = {
    *("masked_fill", "masked_fill_", "where", "full", "full_like", "new_full", "fill_"),
    *("tensor", "setitem", "scalar_tensor", "index_fill", "index_fill_", "masked_scatter"),
}
DIVISIONS = {
    *("div", "div_", "divide", "true_divide", "truediv", "rtruediv", "itruediv", "rdiv"),
    *("reciprocal", "reciprocal_", "rsqrt", "rsqrt_", "pow", "rpow"),
}
ADDITIONS = {"add", "add_", "iadd", "radd", "sub", "rsub", "sub_", "isub"}
MASKINGS = {"mul", "mul_", "imul", "rmul", "masked_fill", "masked_fill_", "where"}
MASKED_WITHIN = 4  # operations between a mask and its softmax
PADDING = "; in a padding mask of PyTorch's layers True hides a key: is it the wrong way round?"
LOUD = 300.0  # scores this large: e**-300 of the weight is left for the others
FEW = 8  # elements that may be equal by chance
FLAT = {"relu", "relu_", "clamp", "clamp_", "sigmoid", "tanh", "hardtanh", "relu6", "threshold"}
# The largest number of a dtype, and the smallest that is held in full.
DTYPE_LIMITS = {
    "float16": (65504.0, 6.1e-05),
    "bfloat16": (3.39e38, 1.18e-38),
    "float32": (3.40e38, 1.18e-38),
    "float64": (1.80e308, 2.2e-308),
}


# ---------------------------------------------------------------- NaN


def nan_origin(rows: Rows) -> Iterator[Finding]:
    """The first NaN; only a note where nothing of it is left at the end."""
    ops = rows.raw.ops
    for op in ops:
        if op.nan and not any(p >= 0 and ops[p].nan for p in op.parents):
            lasts = ops[-1].nan or rows.raw.crash is not None
            message = _nan_message(rows, op)
            if not lasts:
                message += "; nothing of it is left at the end of the trace"
            yield finding_at(op, "nan-origin", message, "error" if lasts else "note")
            return


def _nan_message(rows: Rows, op: Op) -> str:
    close = measurement_at(rows, op)
    if close is not None and close.masked is not None:
        count, first = close.masked
        where = ", ".join(map(str, first))
        many = f"{count} rows have" if count > 1 else "1 row has"
        return (
            f"first NaN: {op.op} over a row that is -inf everywhere is 0/0. {many} every key "
            f"masked, the first is row [{where}] of {show(rows.axes[op.index])}"
            f"{_added_masks(rows, op)}"
        )
    if close is not None and close.sources:
        held = "it" if close.tainted else "an infinity"
        return f"first NaN: {op.op} took {held} from {', '.join(close.sources)}"
    infinite = [p for p in op.parents if p >= 0 and rows.raw.ops[p].inf]
    if infinite and not (close and close.tainted):
        source = rows.raw.ops[infinite[0]]
        return (
            f"first NaN: {op.op} took an infinity from {source.op} ({line_of(source, op.file)}); "
            "inf - inf, 0 * inf and inf / inf are NaN"
        )
    if close is not None and _beyond(close, op):
        return f"first NaN: {_overflowed(close, op)}; inf - inf is NaN"
    return _nan_source(rows, op, close)


def _nan_source(rows: Rows, op: Op, close: Measured | None) -> str:
    operands = rows.raw.operands[op.index]
    if close and close.tainted and 0 <= close.tainted[0] < len(operands):
        first = close.tainted[0]
        return (
            f"first NaN: {op.op} took it from its operand {first + 1}, of shape "
            f"{operands[first]}, which no operation of this run made: look for a NaN in the "
            "inputs, weights and buffers"
        )
    if close is not None or rows.made_by_rows(op):
        return f"first NaN: {op.op} made it from tensors that had none{_why(op)}"
    return f"first NaN: {op.op} made it, or took it from a weight or an input"


def _why(op: Op) -> str:
    if op.op in DIVISIONS:
        return ": 0 / 0 is NaN, so guard the divisor with clamp(min=...) or an epsilon"
    if op.op in {"sqrt", "sqrt_", "rsqrt", "log", "log_", "log2", "pow", "acos", "asin"}:
        return f": {op.op} of a negative number is NaN"
    return ""


def _added_masks(rows: Rows, op: Op) -> str:
    """Where -inf came from two masks of the lowest number, added."""
    todo, seen = [p for p in op.parents if p >= 0], set()
    while todo:
        row = rows.raw.ops[todo.pop()]
        above = [rows.raw.ops[p] for p in row.parents if p >= 0]
        if row.op in ADDITIONS and row.min == -math.inf and not any(p.inf for p in above):
            return (
                f": {row.op} {place_of(row, op.file)} added two masks of the lowest {row.dtype}, "
                "and their sum is -inf; combine masks as booleans, or clamp the sum"
            )
        fresh = [p.index for p in above if p.inf and p.index not in seen]
        seen.update(fresh)
        todo += fresh
    return ""


# ---------------------------------------------------------------- queries that see nothing


def empty_rows(rows: Rows) -> Iterator[Finding]:
    """The first attention with queries that may see no key, where no NaN tells of it."""
    ops = rows.raw.ops
    for barred in rows.raw.barred:
        op = ops[barred.row]
        if (op.nan and ops[-1].nan) or not _is_masked(ops, op):
            continue
        fused = op.op not in SOFTMAX
        where = ", ".join(map(str, barred.first))
        many = f"{barred.count} queries have" if barred.count > 1 else "1 query has"
        do = "its output is 0, or NaN in older versions" if fused else "its weights are no choice"
        yield finding_at(
            op,
            "no-visible-key",
            f"{many} every key masked in the attention of {op.op}, the first is [{where}]: {do}. "
            f"A query should see at least one key{PADDING if 'padding_mask' in op.source else ''}",
            "warning" if _is_a_slip(rows, barred, op) else "note",
        )
        return


def _is_a_slip(rows: Rows, barred: Barred, op: Op) -> bool:
    """The same queries in each entry of the batch, by a mask of the module's own, and none of them
    there to fill up a block."""
    queries = rows.axes[op.index][-2:-1]
    filled = queries and not queries[0].strip("'").isidentifier()
    return barred.everywhere and not filled and not _masks_given(rows, op)


def _is_masked(ops: Sequence[Op], op: Op) -> bool:
    """A mask, and not large distances, made the scores low."""
    above = [ops[p] for p in op.parents if p >= 0]
    for _ in range(MASKED_WITHIN):
        if op.op not in SOFTMAX or any(o.op in FILLS | ADDITIONS for o in above):
            return True
        above = [ops[p] for o in above for p in o.parents[:1] if p >= 0]
    return False


def _masks_given(rows: Rows, op: Op) -> bool:
    """Whether a mask among the inputs may be what hides the keys, or a batch of one is unlucky."""
    if rows.raw.sizes.get("B", 2) == 1 and op.op in SOFTMAX:
        return True
    given = {p for o in rows.ancestors([op.index]) for p in o.parents if p < 0}
    return any(
        rows.raw.input_kinds[-1 - p] == "bool" or "mask" in rows.raw.input_names[-1 - p]
        for p in given
    )


# ---------------------------------------------------------------- infinities


def overflows(rows: Rows) -> Iterator[Finding]:
    """The first infinity that no mask put there."""
    for op in rows.raw.ops:
        if is_overflow(rows.raw.ops, op):
            yield finding_at(op, "infinity-origin", _infinity_message(rows, op))
            return


def is_overflow(ops: Sequence[Op], op: Op) -> bool:
    """+inf that no fill made; -inf only of a sum of products, elsewhere it may be a mask."""
    if op.nan or op.op in FILLS or op.view or any(p >= 0 and ops[p].inf for p in op.parents):
        return False
    return op.max == math.inf or (op.min == -math.inf and op.op in CONTRACTIONS)


def _infinity_message(rows: Rows, op: Op) -> str:
    close = measurement_at(rows, op)
    if close is not None and close.sources:
        return f"first infinity: {op.op} took it from {', '.join(close.sources)}"
    if op.op in DIVISIONS:
        made_by_rows = "divided by zero"
        if op.op == "pow":  # its exponent may be positive
            made_by_rows += f", or made more than {op.dtype} holds"
    elif close is not None and _beyond(close, op):
        return f"first infinity: {_overflowed(close, op)}"
    else:
        made_by_rows = f"made more than {op.dtype} holds"
    if close is None and not rows.made_by_rows(op):
        made_by_rows += ", unless a weight or an input held one"
    return f"first infinity: {op.op} {made_by_rows}"


def _beyond(close: Measured, op: Op) -> bool:
    return close.reach is not None and close.reach > DTYPE_LIMITS.get(op.dtype, (math.inf,))[0]


def _overflowed(close: Measured, op: Op) -> str:
    ranges = " and ".join(f"±{number(r)}" for r in close.ranges[:2])
    reach = number(close.reach or math.inf)
    within = f"; its operands lie within {ranges}" if ranges else ""
    do = "scale an operand before it, or compute it in float32"
    advice = f". To stay within, {do}" if op.dtype == "float16" else ""
    end = number(DTYPE_LIMITS[op.dtype][0])
    return f"{op.op} made {reach} where {op.dtype} ends at {end}{within}{advice}"


def number(value: float) -> str:
    """Up to six digits, and no exponent below a million."""
    return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.3g}"


def measurement_at(rows: Rows, op: Op) -> Measured | None:
    return next((m for m in rows.raw.measured if m.row == op.index), None)


# ---------------------------------------------------------------- weights that no longer sum to 1


def late_masks(rows: Rows) -> Iterator[Finding]:
    """A mask that took weight from a softmax's rows without giving it to the others."""
    for close in rows.raw.measured:
        if close.sums is None or not 0 <= close.row < len(rows.raw.ops):
            continue
        op, (low, count) = rows.raw.ops[close.row], close.sums
        yield finding_at(
            op,
            "mask-after-softmax",
            f"{op.op} takes keys away after the softmax: {count} rows of "
            f"{show(rows.axes[op.index])} no longer sum to 1 (the least to {low:.3g}). Set the "
            "scores to -inf before the softmax instead, or divide by the new sum",
        )


def late_masked(ops: Sequence[Op]) -> Iterator[int]:
    """Rows that may be such a mask: the weights of an attention, and a mask, without a new sum."""
    for op in ops:
        if op.op not in MASKINGS or op.nan or op.mean is None or not op.shape:
            continue
        weights = [p for p in op.parents if p >= 0 and ops[p].op in SOFTMAX and not ops[p].nan]
        if len(weights) != 1 or ops[weights[0]].shape != op.shape:
            continue
        if _of_scores(ops, weights[0]) and not _divided(ops, op.index):
            yield op.index


def _of_scores(ops: Sequence[Op], row: int) -> bool:
    """The softmax's operand descends from a product of two tensors that operations made."""
    for _ in range(8):
        above = [p for p in ops[row].parents if p >= 0]
        if ops[row].op in SCORES:
            return len(ops[row].parents) > 1
        if not above:
            return False
        row = max(above, key=lambda p: (len(ops[p].shape), p))
    return False


def _divided(ops: Sequence[Op], row: int) -> bool:
    """What descends from the row, up to a product, is divided: a new sum may be at work."""
    family = {row}
    for op in ops[row + 1 :]:
        if family & set(op.parents):
            if op.op in DIVISIONS or op.op == "normalize":
                return True
            if op.op not in SCORES:
                family.add(op.index)
    return False


# ---------------------------------------------------------------- harmless alone


def saturated(rows: Rows) -> Iterator[Finding]:
    """The first softmax over scores so large that one key takes all."""
    ops = rows.raw.ops
    for op in ops:
        scores = [ops[p] for p in op.parents if p >= 0] if op.op in SOFTMAX else []
        if not scores or scores[0].index not in rows.data or not _hard(op, scores[0]):
            continue
        yield finding_at(
            op,
            "softmax-saturated",
            f"{op.op} over scores up to {number(scores[0].max or 0.0)} gives one key all the "
            "weight, and no gradient to any; a scale such as 1/sqrt(hd) may be missing",
            "note",
        )
        return


def _hard(op: Op, scores: Op) -> bool:
    top = scores.max
    return top is not None and LOUD < top < math.inf and (op.min, op.max) == (0.0, 1.0)


def constants(rows: Rows) -> Iterator[Finding]:
    """The first activation that is the same everywhere though what it was given is not."""
    ops = rows.raw.ops
    for op in ops:
        above = [ops[p] for p in op.parents if p >= 0]
        if op.op not in FLAT or op.index not in rows.data or not above:
            continue
        if op.min is None or op.min != op.max or math.prod(op.shape) <= FEW:
            continue
        if _varies(above[0]):
            yield finding_at(
                op,
                "constant-output",
                f"{op.op} made {number(op.min)} everywhere in {show(rows.axes[op.index])}, of "
                f"values from {number(above[0].min or 0.0)} to {number(above[0].max or 0.0)}: "
                "nothing of its input is left",
                "note",
            )
            return


def _varies(op: Op) -> bool:
    return op.min is not None and op.max is not None and op.min < op.max


def denormals(rows: Rows) -> Iterator[Finding]:
    """The first tensor whose every value is too small to be held in full."""
    for op in rows.raw.ops:
        end = DTYPE_LIMITS.get(op.dtype)
        if end is None or op.min is None or op.max is None or op.index not in rows.data:
            continue
        if 0 < max(-op.min, op.max) < end[1]:
            yield finding_at(
                op,
                "denormal-values",
                f"{op.op} made no value beyond {max(-op.min, op.max):.2g}: below {end[1]:.2g} "
                f"{op.dtype} loses digits, and speed",
                "note",
            )
            return

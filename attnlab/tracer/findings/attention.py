"""Findings about how scores become weights: masks that do not mask, scales, softmaxes, dropout."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.base import SOFTMAX, Rows, show
from attnlab.tracer.raw_trace import finding_at, line_of
from attnlab.tracer.views.attention_sites import VIEWS, find_sites

WEAK = -30.0  # exp of it leaves 1e-13: a mask below this hides its keys from most scores
FILLS = {"masked_fill", "masked_fill_", "where"}
SUMS = {"add", "add_", "iadd", "radd"}
PRODUCTS = {"mul", "mul_", "imul", "rmul", "multiply"}
# What brings a score that a mask has sunk back among the others.
BOUNDING = {"tanh", "tanh_", "clamp", "clamp_", "sigmoid", "relu", "relu_", "abs", "hardtanh"}
TRIANGLES = {"tril", "triu", "ones", "ones_like", "zeros"}
FULL = {"full", "full_like", "ones_like", "zeros_like", "ones", "zeros", "new_full", "new_zeros"}
# What leaves scores on the way from a layer to their softmax as they lie.
PLAIN = {*FILLS, "add", "sub", "mul", "div", "truediv", "tanh", "leaky_relu", "float", "to"}
SUNK = -1e3  # a score that a mask has lowered


def weak_masks(rows: Rows) -> Iterator[Finding]:
    """Scores at which a mask puts a number that hides nothing: 0, 1e-9, -1."""
    numbers = dict(rows.raw.flow.numbers)
    for chain in (*_chains(rows), *_fills_alone(rows)):
        for op in chain:
            filled = _filled(rows, op, numbers)
            if filled is not None and WEAK < filled < math.inf:
                yield finding_at(
                    op,
                    "mask-value",
                    f"{op.op} sets masked scores {show(rows.axes[op.index])} to {filled:g}: after "
                    f"the softmax such a key weighs {math.exp(min(filled, 50)):.3g} of one with "
                    "score 0, so it is not hidden; fill with -inf",
                )
            elif op.op in SUMS and (mask := _binary_operand(rows, op)) is not None:
                top = rows.raw.ops[mask].max if mask >= 0 else 1.0
                yield finding_at(
                    op,
                    "mask-value",
                    f"{op.op} adds a mask of 0 and {top:g} to the scores "
                    f"{show(rows.axes[op.index])}: that moves a score by {top:g} and hides no key; "
                    "use masked_fill with -inf, or add 0 and -inf",
                )


def multiplied_masks(rows: Rows) -> Iterator[Finding]:
    """Scores that are multiplied by a mask of zeros and ones before the softmax."""
    for chain in _chains(rows):
        for op in chain:
            mask = _binary_operand(rows, op) if op.op in PRODUCTS else None
            sunk = any(o.min is not None and o.min < SUNK for o in chain)
            if mask is None or sunk or any(o.op in FILLS for o in chain):
                continue
            yield finding_at(
                op,
                "mask-multiplied",
                f"{op.op} sets masked scores {show(rows.axes[op.index])} to 0, and exp(0) is 1: "
                "the softmax still gives these keys weight; fill with -inf instead",
            )


def undone_masks(rows: Rows) -> Iterator[Finding]:
    """A mask that a bounded function takes back before the softmax."""
    for chain in _chains(rows):
        masked: Op | None = None
        for op in chain:
            low = op.min
            if low is not None and low < SUNK:
                masked = masked or op
            elif masked is not None and op.op in BOUNDING and low is not None:
                yield finding_at(
                    op,
                    "mask-undone",
                    f"{op.op} comes after the mask of {line_of(masked, op.file)} and lifts the "
                    f"masked scores from {masked.min:.3g} to {low:.3g}: these keys get weight "
                    "again. Mask last, right before the softmax",
                )
                break


def second_softmaxes(rows: Rows) -> Iterator[Finding]:
    """A softmax over what is a softmax already."""
    ops = rows.raw.ops
    for op in ops:
        if op.op not in (*SOFTMAX, "log_softmax") or not op.parents or op.parents[0] < 0:
            continue
        above = ops[op.parents[0]]
        while (
            above.op in VIEWS | {"dropout", "to", "float"}
            and above.parents
            and above.parents[0] >= 0
        ):
            above = ops[above.parents[0]]
        if above.op in SOFTMAX:
            yield finding_at(
                op,
                "softmax-twice",
                f"{op.op} is taken of the softmax of {line_of(above, op.file)}: its operand lies "
                "between 0 and 1, so the result is nearly uniform; drop one of the two",
            )


# ---------------------------------------------------------------- dropout


def live_dropout(rows: Rows) -> Iterator[Finding]:
    """Dropout that drops although the module is in eval mode."""
    if rows.raw.flow.training:
        return
    numbers = dict(rows.raw.flow.numbers)
    for op in rows.raw.ops:
        given = dict(numbers.get(op.index, ()))
        if op.op == "dropout":
            rate = given.get("1", given.get("p", 0.5))
            active = bool(given.get("2", given.get("training", given.get("train", 1.0))))
        elif op.op == "scaled_dot_product_attention":
            rate, active = given.get("4", given.get("dropout_p", 0.0)), True
        else:
            continue
        if active and rate > 0 and not _decided_by_mode(op):
            yield finding_at(
                op,
                "dropout-in-evaluation",
                f"{op.op} drops {rate:g} of the values although the module is in eval mode: pass "
                "training=self.training, or use nn.Dropout",
            )
            return


def _decided_by_mode(op: Op) -> bool:
    return "self.training" in op.source


# ---------------------------------------------------------------- on the way to a softmax


def _chains(rows: Rows) -> Iterator[list[Op]]:
    """The operations from each product of queries and keys down to its softmax."""
    ops = rows.raw.ops
    for site in find_sites(ops):
        if not site.fused and len(site.chain) > 1:
            yield [ops[row] for row in reversed(site.chain)]


def _fills_alone(rows: Rows) -> Iterator[list[Op]]:
    """What is filled right before a softmax of scores that are no product, as those of a sum."""
    ops = rows.raw.ops
    known = {row for site in find_sites(ops) for row in site.chain}
    for op in ops:
        if op.op not in SOFTMAX or op.index in known or not op.parents or op.parents[0] < 0:
            continue
        above = ops[op.parents[0]]
        while above.op in VIEWS and above.parents and above.parents[0] >= 0:
            above = ops[above.parents[0]]
        if above.op in FILLS:
            yield [above]


def lone_choices(rows: Rows) -> Iterator[Finding]:
    """A softmax over an axis that has one entry whenever its line runs: a decoder has one key in
    its first step alone."""
    numbers = dict(rows.raw.flow.numbers)
    lines: dict[tuple[str, int | None], list[Op]] = defaultdict(list)
    for op in rows.raw.ops:
        if op.op in SOFTMAX and len(op.shape) > 1:
            lines[op.file, op.line].append(op)
    for ops in lines.values():
        dims = {int(v) for op in ops for key, v in numbers.get(op.index, ()) if key in ("1", "dim")}
        dim = next(iter(dims)) if len(dims) == 1 else None
        first = ops[0]
        if dim is None or not -len(first.shape) <= dim < len(first.shape):
            continue
        made = rows.raw.ops[first.parents[0]] if first.parents[:1] > (-1,) else None
        linear = made is not None and any(op.op == "linear" for op in (made, *_near(rows, made)))
        if linear and all(op.shape[dim] == 1 for op in ops):
            yield finding_at(
                first,
                "softmax-axis",
                f"softmax runs over axis {dim} of {show(rows.axes[first.index])}, which has one "
                "entry: every weight is 1, whatever the scores are",
            )


def _near(rows: Rows, op: Op) -> Iterator[Op]:
    """What an operation was made of, as far as fills and quotients go."""
    while op.op in PLAIN and op.parents[:1] > (-1,):
        op = rows.raw.ops[op.parents[0]]
        yield op


def _filled(rows: Rows, op: Op, numbers: Mapping[int, Sequence[tuple[str, float]]]) -> float | None:
    """The number that a mask puts into the scores."""
    if op.op not in FILLS:
        return None
    given = [v for _, v in numbers.get(op.index, ())]
    if given:
        return given[-1]
    small = [p for p in op.parents if p >= 0 and _is_uniform(rows, p)]
    return rows.raw.ops[small[-1]].max if small else None


def _is_uniform(rows: Rows, row: int) -> bool:
    """One number, or a tensor of one number that no data went into but by its shape."""
    op = rows.raw.ops[row]
    made = op.op in FULL or any(p >= 0 and rows.raw.ops[p].op in FULL for p in op.parents)
    return math.prod(op.shape) == 1 or (made and op.min is not None and op.min == op.max)


def _binary_operand(rows: Rows, op: Op) -> int | None:
    """The operand of zeros and ones that is no data: a mask that was made, held or given as
    numbers; the operation itself where it took a buffer."""
    ops, binary = rows.raw.ops, binary_rows(rows)
    if op.index in binary:
        return op.index
    for parent in op.parents:
        if parent >= 0:
            seen = ops[parent]
            made = parent in binary or (parent not in rows.data and _is_made_binary(rows, parent))
            if made and (seen.min, seen.max) == (0.0, 1.0) and len(seen.shape) > 1:
                return parent
        elif rows.raw.input_kinds[-1 - parent] == "bool" and len(rows.shape(parent)) > 1:
            return parent
    return None


def binary_rows(rows: Rows) -> set[int]:
    """The rows that took a buffer of zeros and ones."""
    return {row for held in rows.raw.flow.held if held.binary for row in held.rows}


def _is_made_binary(rows: Rows, row: int) -> bool:
    """It descends from comparisons, triangles or ones, not from a random or graded table."""
    todo, ops = [row], rows.raw.ops
    for _ in range(24):
        if not todo:
            return False
        op = ops[todo.pop()]
        if op.dtype == "bool" or op.op in TRIANGLES:
            return True
        todo += [p for p in op.parents if p >= 0]
    return False

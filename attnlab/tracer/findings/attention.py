"""Findings about how scores become weights: masks that do not mask, scales, softmaxes, dropout."""

import math
from collections.abc import Iterator, Mapping, Sequence

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.base import SOFTMAX, Rows, show
from attnlab.tracer.raw_trace import finding_at
from attnlab.tracer.views.attention_sites import VIEWS, find_sites

WEAK = -30.0  # exp of it leaves 1e-13: a mask below this hides its keys from most scores
FILLS = {"masked_fill", "masked_fill_", "where"}
SUMS = {"add", "add_", "iadd", "radd"}
PRODUCTS = {"mul", "mul_", "imul", "rmul", "multiply"}
QUOTIENTS = {"div", "div_", "truediv", "itruediv", "true_divide", "divide"}
# What brings a score that a mask has sunk back among the others.
BOUNDING = {"tanh", "tanh_", "clamp", "clamp_", "sigmoid", "relu", "relu_", "abs", "hardtanh"}
NORMS = {"normalize", "layer_norm", "rms_norm", "pow", "rsqrt"}
KEPT = VIEWS | {"chunk", "split", "unbind", "contiguous", "to", "float", "dropout"}
KEPT |= {"repeat_interleave", "type_as", "clone"}
TRIANGLES = {"tril", "triu", "ones", "ones_like", "zeros"}
SUNK = -1e3  # a score that a mask has lowered
CLOSE = 1e-3


def weak_masks(rows: Rows) -> Iterator[Finding]:
    """Scores at which a mask puts a number that hides nothing: 0, 1e-9, -1."""
    numbers = dict(rows.raw.flow.numbers)
    for chain in _chains(rows):
        for op in chain:
            filled = _filled(rows, op, numbers)
            if filled is not None and WEAK < filled < math.inf:
                yield finding_at(
                    op,
                    "mask-value",
                    "warning",
                    f"{op.op} sets masked scores {show(rows.axes[op.index])} to {filled:g}: after "
                    f"the softmax such a key weighs {math.exp(min(filled, 50)):.3g} of one with "
                    "score 0, so it is not hidden; fill with -inf",
                )
            elif op.op in SUMS and (mask := _binary_operand(rows, op)) is not None:
                top = rows.raw.ops[mask].max if mask >= 0 else 1.0
                yield finding_at(
                    op,
                    "mask-value",
                    "warning",
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
                "warning",
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
                    "warning",
                    f"{op.op} comes after the mask of line {masked.line} and lifts the masked "
                    f"scores from {masked.min:.3g} to {low:.3g}: these keys get weight again. Mask "
                    "last, right before the softmax",
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
                "warning",
                f"{op.op} is taken of the softmax of line {above.line}: its operand lies between 0 "
                "and 1, so the result is nearly uniform; drop one of the two",
            )


def scales(rows: Rows) -> Iterator[Finding]:
    """Scores that are scaled by another number than one over the root of the head's width."""
    numbers = dict(rows.raw.flow.numbers)
    ops = rows.raw.ops
    for site in find_sites(ops):
        if site.fused or not site.chain:
            continue
        product = ops[site.chain[-1]]
        if product.op not in ("matmul", "bmm", "einsum") or len(product.parents) < 2:
            continue
        width = _width(rows, product)
        if width < 3:
            continue
        factor = 1.0
        for row in site.chain[:-1]:
            factor *= _factor(rows, ops[row], numbers) or 1.0
        sides = [_side_factor(rows, p, numbers) for p in product.parents[:2]]
        if None in sides or not all(_is_projected(rows, p) for p in product.parents[:2]):
            continue
        factor *= math.prod(s for s in sides if s)
        yield from _judge_scale(rows, product, factor, width)
        return  # one is enough: layers are alike


def _judge_scale(rows: Rows, product: Op, factor: float, width: int) -> Iterator[Finding]:
    right = 1 / math.sqrt(width)
    if abs(factor / right - 1) < 0.01 or factor <= 0:
        return
    sizes = rows.raw.sizes
    wide = sizes.get("D", 0)
    shown = f"the scores of line {product.line}, sums of {width} products,"
    if abs(factor - 1) < CLOSE:
        yield finding_at(
            product,
            "scale",
            "note",
            f"{shown} are not scaled: their spread grows as sqrt({width}) = {width**0.5:.3g}, and "
            "the softmax gets hard; 1/sqrt(hd) is usual (T5 leaves it out on purpose)",
        )
        return
    others = {
        f"1/sqrt(D) = 1/sqrt({wide})": wide**-0.5 if wide else 0.0,
        f"1/hd = 1/{width}": 1 / width,
        f"sqrt(hd) = sqrt({width})": width**0.5,
        "1/sqrt(hd) twice": 1 / width,
        f"1/sqrt(hd)**0.5 = {width}**-0.25": width**-0.25,
    }
    name = next((n for n, v in others.items() if v and abs(factor / v - 1) < 0.01), f"{factor:.4g}")
    severity = "note" if abs(factor * width - 1) < 0.01 else "warning"
    named = name != f"{factor:.4g}"
    yield finding_at(
        product,
        "scale",
        "warning" if named and severity == "warning" else "note",
        f"{shown} are multiplied by {name} in all; usual is 1/sqrt({width}) = {right:.4g}, the "
        "width of a head",
    )


def _width(rows: Rows, product: Op) -> int:
    """How many products each score is the sum of: the axis that both operands lose."""
    shape = rows.shape(product.parents[0])
    return shape[-1] if shape and product.op != "einsum" else _einsum_width(rows, product)


def _einsum_width(rows: Rows, product: Op) -> int:
    """The size of the contracted axis of an einsum, by its names."""
    first, second = (rows.named(p) for p in product.parents[:2])
    kept = set(rows.axes[product.index])
    lost = [
        n
        for name, n in zip(first, rows.shape(product.parents[0]), strict=True)
        if name in second and name not in kept
    ]
    return lost[0] if len(lost) == 1 else 0


def _factor(rows: Rows, op: Op, numbers: Mapping[int, Sequence[tuple[str, float]]]) -> float | None:
    """The number that an operation multiplies its one operand by; None where there is none."""
    if op.op not in PRODUCTS | QUOTIENTS:
        return None
    value = next((v for _, v in numbers.get(op.index, ())), None)
    if value is None:
        small = [p for p in op.parents if p >= 0 and rows.shape(p) == ()]
        value = rows.raw.ops[small[0]].max if len(small) == 1 else None
    if not value:
        return None
    return value if op.op in PRODUCTS else 1 / value


def _is_projected(rows: Rows, row: int) -> bool:
    """What it is made of, through views and factors, came out of a layer."""
    for _ in range(12):
        if row < 0:
            return False
        op = rows.raw.ops[row]
        if op.op in ("linear", "einsum", "matmul", "conv1d", "addmm"):
            return True
        if not op.parents:
            return False
        row = op.parents[0]
    return False


def _side_factor(
    rows: Rows, row: int, numbers: Mapping[int, Sequence[tuple[str, float]]]
) -> float | None:
    """The numbers that queries or keys were multiplied by since their projection; None where a
    norm or a learned factor makes the scale."""
    factor = 1.0
    for _ in range(12):
        if row < 0:
            return factor
        op = rows.raw.ops[row]
        found = _factor(rows, op, numbers)
        if found is not None:
            factor *= found
        elif op.op in PRODUCTS | QUOTIENTS | {
            "normalize",
            "layer_norm",
            "rms_norm",
            "pow",
            "rsqrt",
        }:
            return None
        elif op.op not in VIEWS | {
            "chunk",
            "split",
            "unbind",
            "contiguous",
            "to",
            "repeat_interleave",
        }:
            return factor
        if not op.parents:
            return factor
        row = op.parents[0]
    return factor


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
                "warning",
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


def _filled(rows: Rows, op: Op, numbers: Mapping[int, Sequence[tuple[str, float]]]) -> float | None:
    """The number that a mask puts into the scores."""
    if op.op not in FILLS:
        return None
    given = [v for _, v in numbers.get(op.index, ())]
    if given:
        return given[-1]
    small = [p for p in op.parents if p >= 0 and math.prod(rows.shape(p)) == 1]
    return rows.raw.ops[small[-1]].max if small else None


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

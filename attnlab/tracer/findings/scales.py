"""Findings about the number that scores are multiplied by on their way to the softmax."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.attention import PRODUCTS
from attnlab.tracer.findings.base import Rows
from attnlab.tracer.raw_trace import finding_at
from attnlab.tracer.views.attention_sites import VIEWS, find_sites

QUOTIENTS = {"div", "div_", "truediv", "itruediv", "true_divide", "divide"}
CLOSE = 1e-3
Numbers = Mapping[int, Sequence[tuple[str, float]]]


def scales(rows: Rows) -> Iterator[Finding]:
    """Scores that are scaled by another number than one over the root of the head's width."""
    numbers = dict(rows.raw.flow.numbers)
    ops = rows.raw.ops
    for site in find_sites(ops):
        if site.fused:
            if found := _scaled_before(rows, ops[site.soft], numbers):
                yield found
                return
            continue
        if not site.chain:
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


def _scaled_before(rows: Rows, op: Op, numbers: Numbers) -> Finding | None:
    """What a fused attention does again: its queries or keys are scaled already."""
    given = dict(numbers.get(op.index, ()))
    width = (rows.shape(op.parents[0]) or (1,))[-1] if len(op.parents) > 1 else 1
    own = given.get("scale", 1 / math.sqrt(width))
    sides = [_side_factor(rows, p, numbers) for p in op.parents[:2]]
    if width < 3 or None in sides or not all(_is_projected(rows, p) for p in op.parents[:2]):
        return None
    before = math.prod(s for s in sides if s)
    if abs(before * math.sqrt(width) - 1) > CLOSE or abs(own * math.sqrt(width) - 1) > CLOSE:
        return None
    return finding_at(
        op,
        "scale",
        f"queries and keys are multiplied by 1/sqrt({width}) before, and {op.op} does it again: "
        f"scores are divided by {width} in all. Leave one out, or pass scale=1.0",
    )


def _judge_scale(rows: Rows, product: Op, factor: float, width: int) -> Iterator[Finding]:
    right = 1 / math.sqrt(width)
    if abs(factor / right - 1) < 0.01 or factor <= 0:
        return
    sizes = rows.raw.sizes
    wide = sizes.get("D", 0)
    heads = product.shape[1] if len(product.shape) == 4 else 0
    shown = f"the scores of line {product.line}, sums of {width} products,"
    if abs(factor - 1) < CLOSE:
        yield finding_at(
            product,
            "scale",
            f"{shown} are not scaled: their spread grows as sqrt({width}) = {width**0.5:.3g}, and "
            "the softmax gets hard; 1/sqrt(hd) is usual (T5 leaves it out on purpose)",
            "note",
        )
        return
    others = {
        f"1/sqrt(D) = 1/sqrt({wide})": wide**-0.5 if wide else 0.0,
        f"1/sqrt(H) = 1/sqrt({heads})": heads**-0.5 if heads > 1 else 0.0,
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
        f"{shown} are multiplied by {name} in all; usual is 1/sqrt({width}) = {right:.4g}, the "
        "width of a head",
        "warning" if named and severity == "warning" else "note",
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


def _factor(rows: Rows, op: Op, numbers: Numbers) -> float | None:
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


def _side_factor(rows: Rows, row: int, numbers: Numbers) -> float | None:
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

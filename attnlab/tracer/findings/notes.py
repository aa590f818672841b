"""Notes: facts about values that explain other findings and are harmless alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.base import SOFTMAX, Rows, show
from attnlab.tracer.findings.values import DTYPE_LIMITS, number
from attnlab.tracer.raw_trace import finding_at

LOUD = 300.0  # scores this large: e**-300 of the weight is left for the others
FEW = 8  # elements that may be equal by chance
FLAT = {"relu", "relu_", "clamp", "clamp_", "sigmoid", "tanh", "hardtanh", "relu6", "threshold"}


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
            "note",
            f"{op.op} over scores up to {number(scores[0].max or 0.0)} gives one key all the "
            "weight, and no gradient to any; a scale such as 1/sqrt(hd) may be missing",
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
                "note",
                f"{op.op} made {number(op.min)} everywhere in {show(rows.axes[op.index])}, of "
                f"values from {number(above[0].min or 0.0)} to {number(above[0].max or 0.0)}: "
                "nothing of its input is left",
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
                "note",
                f"{op.op} made no value beyond {max(-op.min, op.max):.2g}: below {end[1]:.2g} "
                f"{op.dtype} loses digits, and speed",
            )
            return

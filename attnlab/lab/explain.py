"""Why an operation raised, in terms of the axes of its operands."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from attnlab.lab.axes import Axes
from attnlab.lab.findings import Rows, show
from attnlab.lab.raw import RawFall, Shape
from attnlab.records import Crash, Operand

Explainer = Callable[[RawFall, Sequence[Axes]], str]


def crash(rows: Rows, operands: Sequence[Axes]) -> Crash | None:
    """The crash of a trace, or None where it ran through."""
    fall = rows.raw.fall
    if fall is None:
        return None
    explain = EXPLAIN.get(fall.op, _elementwise if len(fall.operands) > 1 else _plainly)
    return Crash(
        op=fall.op,
        file=fall.file,
        line=fall.line,
        operands=tuple(
            Operand(shape=s, axes=a) for s, a in zip(fall.operands, operands, strict=True)
        ),
        message=fall.message,
        explanation=" ".join(t for t in (explain(fall, operands), _birth(rows)) if t),
        source=fall.source,
        error=fall.error,
        module=fall.module,
    )


def _birth(rows: Rows) -> str:
    """The row that first gave the failing operand the shape it has."""
    fall = rows.raw.fall
    if fall is None or not fall.parents or fall.parents[0] < 0 or fall.op == "":
        return ""
    op = rows.raw.ops[fall.parents[0]]
    return f"That operand was made by {op.op} on line {op.line}."


def _plainly(fall: RawFall, _operands: Sequence[Axes]) -> str:
    if not fall.op:
        return f"The code raised {fall.error} itself; no tensor operation failed."
    return ""


def _linear(fall: RawFall, operands: Sequence[Axes]) -> str:
    x, weight = fall.operands[:2]
    if not x or len(weight) != 2 or x[-1] == weight[1]:
        return _dtypes(fall)
    wide = ""
    if x[-1] % weight[1] == 0:
        wide = f", {x[-1] // weight[1]} times too wide"
    layer = f"{fall.module or 'linear'} maps {weight[1]} features to {weight[0]}"
    return (
        f"{layer}, but the last axis of its input {show(operands[0])} = {show_sizes(x)} "
        f"has {x[-1]}{wide}."
    )


def _matmul(fall: RawFall, operands: Sequence[Axes]) -> str:
    if len(fall.operands) < 2 or not all(fall.operands[:2]):
        return _dtypes(fall)
    (a, b), (na, nb) = fall.operands[:2], operands[:2]
    inner = b[-2] if len(b) > 1 else b[-1]
    if a[-1] == inner:
        return _dtypes(fall) or _elementwise_batch(a, b)
    text = (
        f"matmul sums the last axis of {show(na)} ({a[-1]}) against axis -2 of {show(nb)} ({inner})"
    )
    fit = len(b) > 1 and a[-1] == b[-1]
    return text + (", which must be equal; the second operand transposed (-2, -1) fits." if fit else
                   ", which must be equal.")  # fmt: skip


def _elementwise_batch(a: Shape, b: Shape) -> str:
    clash = _clash(a[:-2], b[:-2])
    return (
        f"The leading axes {show_sizes(a[:-2])} and {show_sizes(b[:-2])} do not line up."
        if clash
        else ""
    )


def _elementwise(fall: RawFall, operands: Sequence[Axes]) -> str:
    full = [(s, n) for s, n in zip(fall.operands, operands, strict=True) if s]
    for (a, na), (b, nb) in itertools.pairwise(full):
        clash = _clash(a, b)
        if clash is not None:
            return (
                f"Lined up from the right, axis {clash} of {show(na)} = {show_sizes(a)} is "
                f"{a[clash]} and of {show(nb)} = {show_sizes(b)} is {b[clash]}: "
                "they must be equal, or 1."
            )
    return _dtypes(fall)


def _clash(a: Shape, b: Shape) -> int | None:
    """The first axis, counted from the right as a negative number, that cannot broadcast."""
    for i in range(1, min(len(a), len(b)) + 1):
        if a[-i] != b[-i] and 1 not in (a[-i], b[-i]):
            return -i
    return None


def _view(fall: RawFall, operands: Sequence[Axes]) -> str:
    if "stride" in fall.message or "contiguous" in fall.message:
        return (
            f"The tensor {show(operands[0])} is not laid out in this order in memory (a transpose "
            "or permute came before), so no view of it has that shape; reshape copies where needed."
        )
    count = 1
    for n in fall.operands[0]:
        count *= n
    return f"The tensor {show(operands[0])} = {show_sizes(fall.operands[0])} has {count} elements."


def _cat(fall: RawFall, operands: Sequence[Axes]) -> str:
    shapes = " and ".join(
        f"{show(n)} = {show_sizes(s)}" for s, n in zip(fall.operands, operands, strict=True)
    )
    return f"Pieces must agree in every axis but the one they are joined along: {shapes}."


def _embedding(fall: RawFall, _operands: Sequence[Axes]) -> str:
    rows = fall.operands[1][0] if len(fall.operands) > 1 and fall.operands[1] else "?"
    return (
        f"The table has {rows} rows, so indices run from 0 to one less."
        if "range" in fall.message
        else ""
    )


def _dtypes(fall: RawFall) -> str:
    kinds = sorted(set(fall.dtypes))
    if len(kinds) > 1 and ("dtype" in fall.message or "type" in fall.message):
        return f"The operands have different dtypes: {', '.join(fall.dtypes)}."
    return ""


def show_sizes(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"


EXPLAIN: dict[str, Explainer] = {
    "": _plainly,
    "linear": _linear,
    "matmul": _matmul,
    "bmm": _matmul,
    "rmatmul": _matmul,
    "view": _view,
    "reshape": _view,
    "unflatten": _view,
    "cat": _cat,
    "stack": _cat,
    "concat": _cat,
    "embedding": _embedding,
}

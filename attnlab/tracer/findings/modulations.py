"""Findings about features that a condition scales: a scale that begins at zero leaves nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.base import CONTRACTIONS, MIXERS, Rows, show
from attnlab.tracer.raw_trace import finding_at, line_of
from attnlab.tracer.views.attention_sites import VIEWS

PRODUCTS = {"mul", "mul_", "imul", "rmul", "multiply", "addcmul"}
SUMS = {"add", "add_", "iadd", "radd"}
NORMS = {"layer_norm", "group_norm", "batch_norm", "rms_norm", "instance_norm"}
ON_THE_WAY = VIEWS | SUMS | {"contiguous", "chunk", "unbind", "relu", "gelu", "silu", "dropout"}
LEARNED = CONTRACTIONS | {"conv3d", "conv_transpose2d", "multi_head_attention_forward"}


def zero_scales(rows: Rows) -> Iterator[Finding]:
    """`norm(x) * scale + shift` where scale and shift are 0 for every condition: what follows is
    fed zeros. A gate, whose product is added to something, may begin at zero."""
    ops = rows.raw.ops
    used: dict[int, list[Op]] = {}
    for op in ops:
        for parent in op.parents:
            used.setdefault(parent, []).append(op)
    for op in ops:
        if op.op not in PRODUCTS or not _is_zero(op) or len(op.shape) < 2:
            continue
        scale = next((ops[p] for p in op.parents if p >= 0 and _is_zero(ops[p])), None)
        varied = [ops[p] for p in op.parents if p >= 0 and not _is_zero(ops[p])]
        layer = _layer_of(ops, scale)
        if scale is None or layer is None or not varied or varied[0].min == varied[0].max:
            continue
        shifted = op.op == "addcmul" or any(
            n.op in SUMS and _is_zero(n) and len(n.parents) > 1 for n in used.get(op.index, ())
        )
        if not shifted and varied[0].op not in NORMS:
            continue
        fed = _fed(op, used)
        if fed is not None:
            yield finding_at(
                op,
                "scale-without-one",
                f"{op.op} multiplies {show(rows.axes[varied[0].index])} of {varied[0].op} by a "
                f"scale that {line_of(layer, op.file)} makes, and that is 0 everywhere as that "
                f"layer begins at zero: {fed.op} ({line_of(fed, op.file)}) gets zeros, whatever "
                "the input. Use 1 + scale, which leaves the features as they are at first",
            )
            return


def _is_zero(op: Op) -> bool:
    return op.min == 0 == op.max and op.dtype.startswith(("float", "bfloat"))


def _layer_of(ops: Sequence[Op], scale: Op | None) -> Op | None:
    """The learned layer that a scale is a part of."""
    while scale is not None and scale.op not in MIXERS:
        above = scale.parents[:1] if scale.op in VIEWS | {"chunk", "split", "unbind"} else ()
        scale = ops[above[0]] if above and above[0] >= 0 else None
    return scale if scale is not None and scale.op != "layer_norm" else None


def _fed(op: Op, used: dict[int, list[Op]]) -> Op | None:
    """The first learned layer that is given nothing but these zeros; None where they are added to
    something."""
    todo, found = [op], None
    while todo:
        for after in used.get(todo.pop().index, ()):
            if after.op in LEARNED:
                found = found or after
            elif after.op in ON_THE_WAY and _is_zero(after):
                todo.append(after)
            else:
                return None
    return found

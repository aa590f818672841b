"""Explain a module line by line, from the trace of one call.

The rows of a line say what is done to which axes. Why it is there is told where it is part of a
known pattern: that is read off what flows into a softmax and out of it, not off names.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from attnlab.records.ablation import Ablation
from attnlab.records.trace import Op, Trace
from attnlab.records.walk import WalkRow, WalkStep

FILE = Path(__file__).with_name("walk.toml")
HARDLY = 0.005  # of the size of the output
PRODUCTS = {"matmul", "einsum", "bmm", "baddbmm"}
MASKS = {"masked_fill", "masked_fill_", "where"}
ON_SCORES = {*MASKS, "add", "sub", "mul", "div", "to", "float", "clamp", "tanh"}
LAYOUT = {"transpose", "permute", "view", "reshape", "contiguous", "expand", "getitem", "flatten"}
GROUPING = {"view", "reshape", "unflatten", "flatten"}
ALONE = {
    "layer_norm": "norm", "rms_norm": "norm", "rsqrt": "norm", "linear": "projection",
    "embedding": "embedding", "gelu": "activation", "relu": "activation", "silu": "activation",
}  # fmt: skip


@cache
def texts() -> dict[str, dict[str, str]]:
    return tomllib.loads(FILE.read_text("utf-8"))


def walk(trace: Trace, parts: Sequence[Ablation] = ()) -> tuple[WalkStep, ...]:
    """The lines in the order in which they ran first, with the parts that were switched off."""
    known = patterns(trace)
    by_index = {op.index: op for op in trace.ops}
    lines: dict[tuple[str, int], list[Op]] = {}
    for op in trace.ops:
        lines.setdefault((op.file, op.line), []).append(op)
    told = set[str]()  # operations that were explained
    without: dict[tuple[str, int], list[str]] = {}
    for part in parts:
        without.setdefault((part.file, part.line), []).append(_change(part))
    return tuple(
        replace(_step(ops, by_index, known, told), without=tuple(without.get(place, ())))
        for place, ops in lines.items()
    )


def _change(part: Ablation) -> str:
    """`masked_fill: the output changes by 42 %, causality is lost`."""
    if part.change is None:
        return f"{part.what}: it does not run"
    size = "hardly" if part.change < HARDLY else f"by {part.change:.0%} of its size"
    lost = f"; lost: {', '.join(part.broke)}" if part.broke else ""
    return f"{part.what}: the output changes {size}{lost}"


def _step(
    ops: list[Op], by_index: Mapping[int, Op], known: Mapping[int, str], told: set[str]
) -> WalkStep:
    names = dict.fromkeys(known[op.index] for op in ops if op.index in known)
    first = ops[0]
    counts = Counter(_key(op, by_index) for op in ops)
    return WalkStep(
        times=min(counts.values()),
        file=first.file,
        line=first.line,
        source=first.source,
        module=first.module,
        rows=tuple(_row(op, by_index, told) for op in _distinct(ops, by_index)),
        why={name: texts()["why"][name] for name in names},
    )


def _distinct(ops: list[Op], by_index: Mapping[int, Op]) -> Iterable[Op]:
    """One of those that do the same: q, k and v go through the same line."""
    found: dict[object, Op] = {}
    for op in ops:
        found.setdefault(_key(op, by_index), op)
    return found.values()


def _key(op: Op, by_index: Mapping[int, Op]) -> object:
    return op.op, op.axes, _took(op, by_index)


def _took(op: Op, by_index: Mapping[int, Op]) -> tuple[tuple[str, ...], ...]:
    return tuple(by_index[p].axes for p in op.parents if p in by_index)


def _row(op: Op, by_index: Mapping[int, Op], told: set[str]) -> WalkRow:
    name = op.op.rstrip("_")
    does = "" if name in told else texts()["does"].get(name, "")
    told.add(name)
    return WalkRow(
        op=op.op,
        took=_took(op, by_index),
        axes=op.axes,
        shape=op.shape,
        view=op.view,
        does=does,
        flops=op.flops or 0,
        bytes=0 if op.view else op.bytes or 0,
    )


# ---------------------------------------------------------------- patterns


def patterns(trace: Trace) -> dict[int, str]:
    """What rows are known as, by their index."""
    by_index = {op.index: op for op in trace.ops}
    found = {o.index: ALONE[o.op] for o in trace.ops if o.op in ALONE and "float" in o.dtype}
    for op in trace.ops:
        parents = [by_index[p] for p in op.parents if p in by_index]
        if name := _of_heads(op, parents) or _of_stream(op, parents, by_index):
            found[op.index] = name
    for op in trace.ops:
        if op.op == "softmax":
            found |= _around_softmax(op, trace, by_index)
    return found


def _of_heads(op: Op, parents: list[Op]) -> str:
    """Whether it cuts the width into heads, moves them, or joins them."""
    if not parents:
        return ""
    heads = {"H", "Hkv"}
    before, after = (heads & {*"*".join(one.axes).split("*")} for one in (parents[0], op))  # of B*H
    if op.op in GROUPING and bool(before) != bool(after):
        return "split" if after else "merge"
    moved = op.op in ("transpose", "permute") and heads & {*op.axes} and "hd" in op.axes[-1:]
    return "heads in front" if moved and op.axes[1:2] in (("H",), ("Hkv",)) else ""


def _of_stream(op: Op, parents: list[Op], by_index: Mapping[int, Op]) -> str:
    """Whether it adds a branch to what the branch was made from, or turns pairs of columns."""
    if op.op == "cat" and any(parent.op == "neg" for parent in parents):
        return "rotate"
    if op.op not in ("add", "add_") or len(op.parents) != 2 or len(op.shape) < 3:
        return ""
    for one, other in (op.parents, op.parents[::-1]):
        start = by_index.get(one)
        if (start is None or start.shape == op.shape) and one in _ancestors(other, by_index):
            return "residual"
    return ""


def _ancestors(index: int, by_index: Mapping[int, Op]) -> set[int]:
    seen, left = set[int](), [index]
    while left:
        op = by_index.get(left.pop())
        new = {*op.parents} - seen if op else set()
        seen |= new
        left += new
    return seen


def _around_softmax(softmax: Op, trace: Trace, by_index: Mapping[int, Op]) -> dict[int, str]:
    """Scores, scale, mask and bias before it; the weighted sum after it."""
    found = {softmax.index: "weights"}
    left = [p for p in softmax.parents if p in by_index]
    while left:
        op = by_index[left.pop()]
        if op.op in PRODUCTS and op.index not in found:
            found[op.index] = "scores"
            found |= {i: "scale" for p in op.parents for i in _scaled(p, by_index)}
        elif op.op in ON_SCORES and op.shape == softmax.shape:
            parents = [by_index[p] for p in op.parents if p in by_index]
            if name := _on_scores(op, parents):
                found[op.index] = name
            left += [p.index for p in parents if p.shape == op.shape]
    if "scores" not in found.values():  # softmax over a vocabulary, or a gate
        return {}
    users = [op for op in trace.ops if op.op in PRODUCTS and _uses(op, softmax, by_index)]
    return found | {op.index: "context" for op in users[:1]}


def _on_scores(op: Op, parents: list[Op]) -> str:
    if op.op in MASKS:
        return "mask"
    if op.op in ("mul", "div") and len(op.parents) == 1:
        return "scale"
    if op.op in ("add", "sub") and len(op.parents) == 2:
        masks = any(p.inf or p.dtype == "bool" or (p.min or 0) < -1e4 for p in parents[1:])
        return "mask" if masks else "bias"
    return ""


def _scaled(index: int, by_index: Mapping[int, Op]) -> Iterator[int]:
    """A multiplication by a number on the way to the scores."""
    op = by_index.get(index)
    while op and op.op in LAYOUT and op.parents:
        op = by_index.get(op.parents[0])
    if op and op.op in ("mul", "div") and len(op.parents) == 1:
        yield op.index


def _uses(op: Op, softmax: Op, by_index: Mapping[int, Op]) -> bool:
    """Whether it multiplies the weights, which dropout, a mask or a cast may have changed."""
    through = {"dropout", "mul", "to", "type_as", "masked_fill", "nan_to_num", "where", *LAYOUT}
    left = [p for p in op.parents if p in by_index]
    while left:
        parent = by_index[left.pop()]
        if parent.index == softmax.index:
            return True
        if parent.op in through and parent.index > softmax.index:
            left += [p for p in parent.parents if p in by_index]
    return False

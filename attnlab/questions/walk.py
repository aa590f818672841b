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
from math import isclose, prod
from pathlib import Path

from attnlab.records.ablation import Ablation
from attnlab.records.trace import Op, Trace
from attnlab.records.walk import WalkRow, WalkStep
from attnlab.tracer.views.attention_sites import PRODUCTS, Site, find_sites

FILE = Path(__file__).with_name("walk.toml")
HARDLY = 0.005  # of the size of the output
MASKS = {"masked_fill", "masked_fill_", "where"}
LAYOUT = {"transpose", "permute", "view", "reshape", "contiguous", "expand", "getitem", "flatten"}
GROUPING = {"view", "reshape", "unflatten", "flatten"}
MOVING = {"transpose", "permute", "swapaxes", "movedim"}
BENDING = {"gelu", "relu", "silu"}
THROUGH = {*LAYOUT, "dropout"}
LIKE = {"type_as", "expand_as", "view_as", "reshape_as"}  # the second operand lends its looks
BLANK = {"zeros_like", "ones_like", "full_like", "empty_like", "new_tensor", "new_zeros"}
ALONE = {
    "layer_norm": "norm", "rms_norm": "norm", "embedding": "embedding",
    "multi_head_attention_forward": "attention",
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
    users: dict[int, list[Op]] = {}
    for op in trace.ops:
        for p in op.parents:
            users.setdefault(p, []).append(op)
    found: dict[int, str] = {}
    for op in trace.ops:
        parents = [by_index[p] for p in op.parents if p in by_index]
        name = _of_layer(op, users, by_index) or _of_heads(op, parents)
        if name := name or _of_stream(op, parents, by_index):
            found[op.index] = name
    for site in find_sites(trace.ops):
        found |= _of_attention(site, trace.ops, by_index)
    return found


def _of_layer(op: Op, users: Mapping[int, list[Op]], by_index: Mapping[int, Op]) -> str:
    """Whether it treats each row by itself, or is a whole attention."""
    if op.op == "linear":
        made = len(op.parents) > 1 and _is_given(op.parents[1], by_index)  # F.linear(q, k)
        return "" if made else "projection"
    if op.op == "rsqrt":
        near = {by_index[i].op for i in _ancestors(op.index, by_index, 3) if i in by_index}
        return "norm" if near & {"mean", "var", "var_mean", "sum"} else ""
    start = by_index.get(op.parents[0]) if op.op in BENDING and op.parents else None
    while start and start.op in THROUGH and start.parents:
        start = by_index.get(start.parents[0])
    if start and start.op == "linear":  # else it may be a feature map, or cut off numbers
        after = users.get(op.index, [])
        while len(after) == 1 and after[0].op in THROUGH:
            after = users.get(after[0].index, [])
        if after and all(user.op == "linear" for user in after):
            return "activation"
        return "gate" if [(u.op, len(u.parents)) for u in after] == [("mul", 2)] else ""
    return ALONE.get(op.op, "") if "float" in op.dtype else ""


def _is_given(index: int, by_index: Mapping[int, Op]) -> bool:
    """Whether it is an input, or made from one."""
    return index < 0 or any(i < 0 for i in _ancestors(index, by_index))


def _of_heads(op: Op, parents: list[Op]) -> str:
    """Whether it cuts the width into heads, moves them in front of the positions, or joins them."""
    if not parents or not {"H", "Hkv"} & {*op.axes, *parents[0].axes}:
        return ""
    if op.op in MOVING and "hd" in op.axes[-1:]:
        in_front = {"H", "Hkv"} & {*op.axes[1:2]} & {*parents[0].axes[2:]}
        return "heads in front" if in_front else ""
    if op.op in GROUPING:
        if _cuts_width(parents[0], op):
            return "split"
        return "merge" if len(op.shape) > 1 and _cuts_width(op, parents[0], last=True) else ""
    return ""


def _cuts_width(whole: Op, cut: Op, last: bool = False) -> bool:
    """Whether one axis of the first, its last one, say, is several of the other: heads, then what
    each of them has."""
    a, b = ([n for n in op.shape if n != 1] for op in (whole, cut))
    names = [name for name, n in zip(cut.axes, cut.shape, strict=False) if n != 1]
    start = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
    end = len(b) - (len(a) - start - 1)
    heads = [n for n in range(start, end - 1) if names[n] in ("H", "Hkv")]
    return bool(heads and a) and prod(b[start:end]) == a[start] and not (last and end < len(b))


def _of_stream(op: Op, parents: list[Op], by_index: Mapping[int, Op]) -> str:
    """Whether it adds a branch to what the branch was made from, or turns pairs of columns."""
    if op.op == "cat" and len(parents) == 2:
        made = [by_index.get(p.parents[0], p) if p.op == "neg" else p for p in parents]
        halves = made[0].parents == made[1].parents and made[0].index != made[1].index
        return "rotate" if halves and [p.op for p in parents].count("neg") == 1 else ""
    if op.op not in ("add", "add_") or len(op.parents) != 2 or len(op.shape) < 3:
        return ""
    for one, other in (op.parents, op.parents[::-1]):
        start = by_index.get(one)
        if (start is None or start.shape == op.shape) and one in _ancestors(other, by_index):
            return "residual"
    return ""


def _ancestors(index: int, by_index: Mapping[int, Op], steps: int = 10**9) -> set[int]:
    """What its numbers were made from."""
    seen, left = set[int](), {index}
    while left and steps:
        left = {p for i in left if i in by_index for p in _made_from(by_index[i], by_index)} - seen
        seen |= left
        steps -= 1
    return seen


def _made_from(op: Op, by_index: Mapping[int, Op]) -> tuple[int, ...]:
    """Its operands, without one that lent its type or shape alone."""
    if op.op in BLANK or (op.op in LIKE and len(op.parents) == 1):
        return ()
    if op.op == "to" and op.parents:
        start = by_index.get(op.parents[0])
        kept = start is None or (
            start.shape == op.shape and isclose(start.max or 0, op.max or 0, rel_tol=0.1)
        )
        return op.parents[:1] if kept else ()
    return op.parents[:1] if op.op in LIKE else op.parents


def _of_attention(site: Site, ops: Sequence[Op], by_index: Mapping[int, Op]) -> dict[int, str]:
    """Scores, scale, mask and bias before the softmax; the weighted sum after it."""
    if site.fused:
        return {site.soft: "attention"}
    chain = [ops[row] for row in site.chain]
    if not chain or chain[-1].op not in PRODUCTS:  # weights of experts, say
        return {}
    product = chain[-1]
    found = {op.index: name for op in chain if (name := _on_scores(op, by_index))}
    found |= {site.soft: "weights", site.context: "context"}
    found |= {i: "scale" for p in product.parents for i in _scaled(p, by_index)}
    if _is_given(product.parents[-1], by_index):  # else it fits queries to a table of distances
        found[product.index] = "scores"
    capped = {i for op in chain if op.op == "tanh" for i in (op.index, *op.parents)}
    for op in chain:
        if found.get(op.index) == "scale" and {op.index, *op.parents} & capped:
            del found[op.index]
    return found


def _on_scores(op: Op, by_index: Mapping[int, Op]) -> str:
    if op.op in MASKS:
        return "mask"
    if _by_number(op, by_index):
        return "scale"
    if op.op in ("add", "sub") and len(op.parents) == 2:
        added = by_index.get(op.parents[1])
        if added and (added.inf or added.dtype == "bool" or (added.min or 0) < -1e4):
            return "mask"
        return "" if all(_fits(p, by_index) for p in op.parents) else "bias"
    return ""


def _fits(index: int, by_index: Mapping[int, Op]) -> bool:
    """Whether a product of two given tensors made it: a sum of two has scores of two kinds."""
    near = [by_index[i] for i in {index, *_ancestors(index, by_index, 4)} if i in by_index]
    return any(op.op in PRODUCTS and all(_is_given(p, by_index) for p in op.parents) for op in near)


def _scaled(index: int, by_index: Mapping[int, Op]) -> Iterator[int]:
    """A multiplication by a number on the way to the scores."""
    op = by_index.get(index)
    while op and op.op in LAYOUT and op.parents:
        op = by_index.get(op.parents[0])
    if op and _by_number(op, by_index):
        yield op.index


def _by_number(op: Op, by_index: Mapping[int, Op]) -> bool:
    """Whether it multiplies every entry by one number; a gain has many, or is 1 at first."""
    start = by_index.get(op.parents[0]) if op.parents else None
    if op.op not in ("mul", "div") or len(op.parents) != 1 or start is None:
        return False
    a, b, c, d = (n or 0.0 for n in (start.min, op.max, start.max, op.min))
    return isclose(a * b, c * d, rel_tol=1e-3) and not isclose(b, c, rel_tol=1e-3)

"""Findings about positions: their numbers, and what their tables meet."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from attnlab.records.trace import Finding, Op
from attnlab.tracer.findings.base import Rows, show
from attnlab.tracer.findings.residuals import SUMS
from attnlab.tracer.raw_trace import finding_at, line_of, place_of
from attnlab.tracer.views.attention_sites import VIEWS, find_sites

# What modules call their positions.
POSITION = re.compile(
    r"(^|\.|(?<!query)_)(pos(?!t)\w*|wpe|pe|rope\w*|rotary\w*|alibi\w*|inv_freq|freqs_c\w*)($|[._])"
)
ANGLES = re.compile(r"cos|sin(?!g|k)|freqs_c|_cis")  # of tables that are kept
HEADS = {"H", "Hkv"}
SHORTEST = 4  # positions of a table
TURNS = {"cos", "sin", "polar"}
MULTIPLIES = {"einsum", "matmul", "bmm", "mm"}  # learned, where one operand is a parameter
LEARNED = {"linear", "embedding", "conv1d", "conv2d", "layer_norm", "rms_norm"}
PRODUCTS = {"mul", "rmul", "mul_", "imul"}
WRITES = {"__setitem__", "setitem", "copy_", "index_copy_", "index_put_"}
EXACT = {"bfloat16": 256, "float16": 2048}  # up to where a dtype holds every whole number


def narrow_positions(rows: Rows) -> Iterator[Finding]:
    """Positions that are counted in 16 bits: beyond 256 or 2048 two of them are one number."""
    for op in rows.raw.ops:
        last = EXACT.get(op.dtype)
        above = rows.raw.ops[op.parents[0]] if op.parents and op.parents[0] >= 0 else None
        counted = op.op == "arange" or (above is not None and above.op == "arange")
        if last and counted and op.max and op.max > 1:
            yield finding_at(
                op,
                "dtype-narrowed",
                f"positions {show(rows.axes[op.index])} are cast to {op.dtype}, which holds whole "
                f"numbers up to {last} only: behind that, neighbours get one position. Multiply "
                "in float32 and cast the cosines and sines",
            )
            return


def cut_numbers(rows: Rows) -> Iterator[Finding]:
    """Numbers with decimals that are written into whole ones."""
    for op in rows.raw.ops:
        if op.op not in WRITES or not op.dtype.startswith(("int", "uint")) or op.dtype == "uint8":
            continue
        for parent in op.parents[1:]:
            given = rows.raw.ops[parent] if parent >= 0 else None
            if given is None or not given.dtype.startswith(("float", "bfloat")):
                continue
            seen = (given.min, given.max, given.mean)
            if any(n is not None and math.isfinite(n) and n != int(n) for n in seen):
                yield finding_at(
                    op,
                    "dtype-narrowed",
                    f"{given.dtype} between {given.min:.3g} and {given.max:.3g} is written into "
                    f"{op.dtype} {show(rows.axes[op.index])}, which cuts it to whole numbers. Make "
                    "that tensor with a float dtype; zeros_like has the dtype of what it is given",
                )
                return


def positions_by_head(rows: Rows) -> Iterator[Finding]:
    """A table of angles that is laid along the heads, where positions stand elsewhere."""
    for op in rows.raw.ops:
        for parent in op.parents if op.op in PRODUCTS else ():
            shape = rows.shape(parent)
            long = [i - len(shape) for i, n in enumerate(shape[:-1]) if n > 1]
            if len(long) != 1 or len(op.shape) < 4 or not _turning(rows, parent):
                continue
            if str(rows.axes[op.index][long[0]]) in HEADS:
                yield finding_at(
                    op,
                    "position-on-heads",
                    f"{op.op} lays a table of angles {show(rows.named(parent))} along the heads of "
                    f"{show(rows.axes[op.index])}: each head is turned by another angle, and all "
                    "positions by the same. Line the table up with the positions",
                )
                return


def turned_values(rows: Rows) -> Iterator[Finding]:
    """Values that are turned by angles as queries and keys are."""
    ops = rows.raw.ops
    for site in find_sites(ops):
        parents = ops[site.context].parents
        given = parents[2:3] if site.fused else [p for p in parents if p != site.weights][-1:]
        product = ops[site.chain[-1] if site.chain else site.context]
        keys = {_seen_otherwise(ops, key) for key in product.parents[1:2]}
        given = [v for v in given if _seen_otherwise(ops, v) not in keys]  # one tensor for both
        above = {row for value in given for row in _since_layer(rows, value)}
        turned = [
            p
            for op in (ops[row] for row in above)
            if op.op in PRODUCTS and len(op.shape) > 2
            for p in op.parents
            if p >= 0 and any(q >= 0 and _turning(rows, q) for q in op.parents if q != p)
        ]
        if turned := [p for p in turned if not _turning(rows, p)]:
            first = ops[min(turned)]
            yield finding_at(
                first,
                "values-turned",
                f"the values of the attention {place_of(ops[site.context], first.file)} are turned "
                "by angles after this, as queries and keys are: the output then depends on where "
                "positions begin. Rotary positions turn queries and keys only",
            )
            return


def _seen_otherwise(ops: Sequence[Op], row: int) -> int:
    """The row that made the elements of this one."""
    while row >= 0 and ops[row].op in {*VIEWS, "repeat_interleave"} and ops[row].parents:
        row = ops[row].parents[0]
    return row


def _since_layer(rows: Rows, start: int) -> set[int]:
    """The row and those that it descends from, up to the last learned layer."""
    todo, seen, ops = [start], set[int](), rows.raw.ops
    weighted = {r for held in rows.raw.flow.held if held.kind == "parameter" for r in held.rows}
    while todo:
        row = todo.pop()
        learned = row >= 0 and (
            ops[row].op in LEARNED or (ops[row].op in MULTIPLIES and row in weighted)
        )
        if row >= 0 and row not in seen and not learned:
            seen.add(row)
            todo += rows.raw.ops[row].parents
    return seen


def _turning(rows: Rows, row: int) -> bool:
    """Whether it is made of sines and cosines, and of nothing that a layer made."""
    above = _since_layer(rows, row)
    ops = rows.raw.ops
    free = all(p < 0 or p in above for r in above for p in ops[r].parents)
    kept = {r for held in rows.raw.flow.held if ANGLES.search(held.name) for r in held.rows}
    kept |= {r for r in above if ops[r].dtype.startswith("complex")}
    return free and any(ops[r].op in TURNS or r in kept for r in above)


def lone_positions(rows: Rows) -> Iterator[Finding]:
    """One row of a table of positions that is added to all of them."""
    ops = rows.raw.ops
    for held in rows.raw.flow.held:
        taken = [ops[r] for r in held.rows if ops[r].op == "getitem"]
        if not POSITION.search(held.name) or len(taken) != 1 or max(held.shape) < SHORTEST:
            continue
        row = taken[0]
        gone = len(held.shape) - len(row.shape)
        lone = gone == 1 and math.prod(row.shape) == held.shape[-1]
        sums = (op for op in ops if row.index in op.parents and op.op in SUMS)
        wide = next((op for op in sums if len(op.shape) > 2 and op.shape[-2] > 1), None)
        if lone and wide is not None:
            yield finding_at(
                row,
                "one-position-for-all",
                f"this takes one row of {held.name} ({held.shape}), and "
                f"{line_of(wide, row.file)} adds it to all positions of "
                f"{show(rows.axes[wide.index])}: nothing tells them apart. A slice, [:length], "
                "takes a row for each",
            )


def late_tokens(rows: Rows) -> Iterator[Finding]:
    """A token that is joined on after positions were added, while their table has a row for it."""
    ops = rows.raw.ops
    for held in rows.raw.flow.held:
        for row in held.rows if POSITION.search(held.name) else ():
            cut = ops[row]
            count = next(
                (n for n, m in zip(held.shape, cut.shape, strict=False) if n == m + 1 > SHORTEST), 0
            )
            if cut.op != "getitem" or len(cut.shape) != len(held.shape) or not count:
                continue
            for sum_ in (op for op in ops if row in op.parents and op.op in SUMS):
                joins = (op for op in ops if op.op == "cat" and sum_.index in op.parents)
                if join := next((op for op in joins if count in op.shape), None):
                    yield finding_at(
                        join,
                        "token-after-positions",
                        f"a token is joined to {show(rows.axes[sum_.index])} after "
                        f"{line_of(cut, join.file)} took {count - 1} of the {count} rows of "
                        f"{held.name}: it has no position, and the last row is never used. "
                        "Join it first, and then add positions",
                    )

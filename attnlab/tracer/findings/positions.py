"""Findings about the numbers of positions."""

from __future__ import annotations

from collections.abc import Iterator

from attnlab.records.trace import Finding
from attnlab.tracer.findings.base import Rows, show
from attnlab.tracer.raw_trace import finding_at

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
                "warning",
                f"positions {show(rows.axes[op.index])} are cast to {op.dtype}, which holds whole "
                f"numbers up to {last} only: behind that, neighbours get one position. Multiply "
                "in float32 and cast the cosines and sines",
            )
            return

"""Inputs read as (S, B, ...) where nobody named their axes and (B, S, ...) fits no operation."""

import re
from collections.abc import Callable
from dataclasses import replace

from attnlab.records.trace import Op
from attnlab.tracer.raw_trace import RawTrace

WRONG_GUESS = {
    *("batch-contraction", "softmax-axis", "position-on-batch", "axes-meet", "axes-order"),
    *("attention-axis", "mask-no-effect"),
}  # findings that a wrong guess of the axes causes


def read_inputs(build: Callable[[bool], RawTrace]) -> RawTrace:
    """The raw trace that `build` makes of one reading of the inputs, batch first or time first.

    Time first is taken only if it removes every finding that a wrong reading could cause and keeps
    the batch to the end: what takes the first position or a mean over positions would otherwise
    take one entry of the batch, or mix them.
    """
    raw = build(False)
    if not any(f.rule in WRONG_GUESS for f in raw.findings):
        return raw
    other = build(True)
    odd = any(f.rule in WRONG_GUESS for f in other.findings)
    if odd or other.input_axes == raw.input_axes or _loses_batch(raw, other):
        return raw
    note = "inputs are read as (S, B, ...), which fits every operation; pass dims to override"
    return replace(other, notes=(*other.notes, note))


def _loses_batch(raw: RawTrace, other: RawTrace) -> bool:
    """What is made of the inputs has a batch in one reading, and positions alone in the other."""
    made: set[int] = set()
    for mine, theirs in zip(raw.ops, other.ops, strict=False):
        if not any(p < 0 or p in made for p in mine.parents):
            continue
        made.add(mine.index)
        before, after = _symbols(mine), _symbols(theirs)
        if "B" in before - after and "S" in after and "float" in mine.dtype:
            return True
    return False


def _symbols(op: Op) -> set[str]:
    return set(re.findall(r"\w+", " ".join(op.axes)))

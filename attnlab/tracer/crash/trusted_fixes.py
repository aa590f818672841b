"""Of the changes with which an operation runs, those that a reader may be told of.

That it runs is not enough: `w.transpose(-2, -1)` of weights sums them over the queries, and axes
may meet whose sizes are equal by chance. A change that lines up axes of two names is left out.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from operator import mul

from attnlab.tracer.axes.agree import Axes
from attnlab.tracer.crash.suggest import ELEMENTWISE, PRODUCTS
from attnlab.tracer.findings import Rows
from attnlab.tracer.raw_trace import RawCrash
from attnlab.tracer.recorder import SOFTMAX

PLACES, BATCH = {"S", "T", "L", "Sq", "Sk"}, {"B"}
BETWEEN = {"dropout", "to", "float", "type_as", "masked_fill", "nan_to_num", "mul", "contiguous"}


def trusted_fixes(rows: Rows, crash: RawCrash, operands: Sequence[Axes]) -> Iterator[str]:
    """The texts of the changes that line up axes of one name."""
    for fit in crash.fits:
        if fit.axes and 0 <= fit.operand < len(operands):
            names = list(operands)
            old = operands[fit.operand]
            names[fit.operand] = tuple(old[i] if i >= 0 else "1" for i in fit.axes)
            turned = fit.operand == 0 and names[0] != old
            shape = [crash.operands[fit.operand][i] if i >= 0 else 1 for i in fit.axes]
            if not _fits_by_name(crash.op, names) or (turned and _are_weights(rows, crash)):
                continue
            if _turns_what_fits(crash, fit.operand, old, names[fit.operand]):
                continue
            if fit.into and _mixes(names[fit.operand], shape, fit.into):
                continue
        yield fit.text


def _turns_what_fits(crash: RawCrash, operand: int, old: Axes, new: Axes) -> bool:
    """Whether a product fits in its matrices, and only what stands before them does not: then
    heads must not become positions."""
    if crash.op not in PRODUCTS or operand > 1 or min(map(len, crash.operands[:2])) < 2:
        return False
    a, b = crash.operands[:2]
    return a[-1] == b[-2] and old[-2:] != new[-2:]


def _fits_by_name(op: str, names: Sequence[Axes]) -> bool:
    a, b = (*names, (), ())[:2]
    if op in PRODUCTS and len(a) > 1 and len(b) > 1:
        return _same(a[-1], b[-2]) and _line_up(a[:-2], b[:-2])
    return op not in ELEMENTWISE or _line_up(a, b)


def _mixes(names: Axes, shape: Sequence[int], into: Sequence[int]) -> bool:
    """Whether a reshape puts positions and features into one axis, and leaves others apart: to
    flatten all but the batch is what a classifier does."""
    groups = list(_merged(names, shape, into))
    return any(
        group & PLACES and group - PLACES - BATCH and any(g - group - BATCH for g in groups)
        for group in groups
    )


def _merged(names: Axes, shape: Sequence[int], into: Sequence[int]) -> Iterator[set[str]]:
    """The names that each new axis has a part of."""
    start, ends = 1, list(itertools.accumulate(shape, mul))
    for n in into:
        end = start * n
        inside = (
            name
            for name, size, last in zip(names, shape, ends, strict=True)
            if size > 1 and last > start and last // size < end
        )
        yield {word for name in inside for word in re.findall(r"[A-Za-z_]+", name)}
        start = end


def _line_up(a: Axes, b: Axes) -> bool:
    return all(
        _same(x, y) for x, y in itertools.zip_longest(reversed(a), reversed(b), fillvalue="1")
    )


def _same(a: str, b: str) -> bool:
    """One name, or one of them says nothing: `S'` and `S[:3]` are positions as S is."""
    ours, theirs = (set(re.findall(r"[A-Za-z_]+", name)) for name in (a, b))
    return not ours or not theirs or bool(ours & theirs)


def _are_weights(rows: Rows, crash: RawCrash) -> bool:
    """Whether the first operand is what a softmax made."""
    row = crash.parents[0] if crash.parents else -1
    while row >= 0 and crash.op in PRODUCTS:
        op = rows.raw.ops[row]
        if op.op in SOFTMAX:
            return True
        row = op.parents[0] if op.op in BETWEEN and op.parents else -1
    return False

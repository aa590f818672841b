"""Numbers as they stand in a table: three digits, units where there are some."""

from __future__ import annotations

import math

from attnlab.records import Op


def format_number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{value:.3g}"


def value_range(op: Op, dots: str) -> str:
    """The range of a row's values."""
    if op.min is None or op.max is None:
        return ""
    low, high = format_number(op.min), format_number(op.max)
    return low if low == high else f"{low} {dots} {high}"


def has_nan_or_inf(op: Op) -> bool:
    """True for NaN and +inf; -inf is what a mask leaves behind."""
    return op.nan or (op.inf and op.max == math.inf)


def format_seconds(value: float | None) -> str:
    """`12.3 us`, `4.56 ms`, `1.2 s`."""
    if value is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e6:.3g} us"

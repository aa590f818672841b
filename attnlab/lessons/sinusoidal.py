"""Sinusoidal positions by hand: D = 4 columns, S = 3 positions, and no number left out."""

import math
from typing import Any

D, S, BASE = 4, 3, 10000.0
Row = list[float]


def frequencies(d: int = D) -> Row:
    """w_i = base^(-2i/D), one for each pair of columns."""
    return [BASE ** (-2 * i / d) for i in range(d // 2)]


def encoding(p: int, d: int = D) -> Row:
    """Row p of the table: sin and cos of p * w_i in turn."""
    return [f(p * w) for w in frequencies(d) for f in (math.sin, math.cos)]


def dot(a: Row, b: Row) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def minus(a: Row, b: Row) -> Row:
    return [x - y for x, y in zip(a, b, strict=True)]


def norm(a: Row) -> float:
    return math.sqrt(dot(a, a))


def rotation(k: int, d: int = D) -> list[Row]:
    """M_k with M_k @ PE[p] = PE[p + k]: one 2 x 2 block for each pair."""
    rows = [[0.0] * d for _ in range(d)]
    for i, w in enumerate(frequencies(d)):
        c, s = math.cos(k * w), math.sin(k * w)
        rows[2 * i][2 * i : 2 * i + 2] = [c, s]
        rows[2 * i + 1][2 * i : 2 * i + 2] = [-s, c]
    return rows


def tokens(b: int, p: int) -> Row:
    """x[b, p]: entry c is b.pc, so that a number says where it stands."""
    return [b + p / 10 + c / 100 for c in range(D)]


def numbers() -> dict[str, Any]:
    w, pe, m = frequencies(), [encoding(p) for p in range(S)], rotation(1)
    steps = [(f"PE[{p}] - PE[{p - 1}]", minus(pe[p], pe[p - 1])) for p in (1, 2)]
    pairs = ((0, 1), (1, 2), (0, 2))
    return {
        "w": w,
        "pe": pe,
        "m": m[0],
        "frequencies": [(i, f"{2 * i}, {2 * i + 1}", v, 2 * math.pi / v) for i, v in enumerate(w)],
        "angles": [(p, *(p * v for v in w)) for p in range(S)],
        "sines": [(p, *(math.sin(p * v) for v in w)) for p in range(S)],
        "cosines": [(p, *(math.cos(p * v) for v in w)) for p in range(S)],
        "table": [(p, *row) for p, row in enumerate(pe)],
        "lengths": [norm(row) for row in pe],
        "products": [dot(pe[one], pe[other]) for one, other in pairs],
        "differences": [(name, *step, norm(step)) for name, step in steps],
        "rotation": [(str(r), *row) for r, row in enumerate(m)],
        "turned": [dot(m[0], row) for row in pe[:-1]],
        **_batch(pe),
        **_wide(8, (1, 10, 100, 1000)),
    }


def _batch(pe: list[Row]) -> dict[str, Any]:
    """Two sequences of tokens, and each with the table added."""
    found: dict[str, Any] = {}
    for b in range(2):
        found[f"x_{b}"] = [(p, *tokens(b, p)) for p in range(S)]
        sums = [[x + y for x, y in zip(tokens(b, p), pe[p], strict=True)] for p in range(S)]
        found[f"sum_{b}"] = [(p, *row) for p, row in enumerate(sums)]
    return found


def _wide(d: int, places: tuple[int, ...]) -> dict[str, Any]:
    w = frequencies(d)
    return {
        "wide": w,
        "wide_angles": [(p, *(p * v for v in w)) for p in places],
        "wide_table": [(p, *encoding(p, d)) for p in places],
    }

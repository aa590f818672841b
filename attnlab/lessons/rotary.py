"""Rotary positions by hand: hd = 4 features, two pairs."""

import math
from typing import Any

Row = tuple[float, ...]
HD, BASE = 4, 100.0  # usually 10000: with 100 the slow pair can be seen to turn
QUERY: Row = (1, 0, 1, 0)
KEY: Row = (1, 1, 0, 1)
S = 4


def frequencies() -> Row:
    """Radians per position, the fast pair first."""
    return tuple(BASE ** (-2 * i / HD) for i in range(HD // 2))


def turn(vector: Row, p: int, halves: bool = True) -> Row:
    """The vector at position p; pairs are (i, i + hd/2), or (2i, 2i + 1)."""
    turned = list(vector)
    for i, w in enumerate(frequencies()):
        one, two = (i, i + HD // 2) if halves else (2 * i, 2 * i + 1)
        a, b, c, s = vector[one], vector[two], math.cos(p * w), math.sin(p * w)
        turned[one], turned[two] = a * c - b * s, a * s + b * c
    return tuple(turned)


def score(m: int, n: int, mixed: bool = False) -> float:
    """The query at position m, the key at n; mixed: the two have other pairs."""
    pairs = zip(turn(QUERY, m), turn(KEY, n, not mixed), strict=True)
    return sum(a * b for a, b in pairs)


def numbers() -> dict[str, Any]:
    w = frequencies()
    turned = [turn(QUERY, p) for p in range(S)]
    scores, mixed_scores = (
        [(m, *(score(m, n, mixed) for n in range(S))) for m in range(S)] for mixed in (False, True)
    )
    return {
        "angles": [(p, *(p * each for each in w)) for p in range(S)],
        "turned": [(p, *row, math.hypot(*row)) for p, row in enumerate(turned)],
        "scores": scores,
        "mixed_scores": mixed_scores,
        "c": math.cos(1),
        "s": math.sin(1),
        "first": turned[1],
        "slow": w[-1],
        "back": 2 * math.pi / w[-1],
        "usual": 2 * math.pi * 10000 ** (126 / 128),
    }

"""The softmax of attention in pieces, by hand: four keys in blocks of two."""

import math
from typing import Any

SCORES = (1.0, 3.0, 2.0, 5.0)
VALUES = (10.0, 20.0, 30.0, 40.0)
BLOCK = 2
State = tuple[float, float, float]


def whole() -> float:
    powers = [math.exp(s) for s in SCORES]
    return sum(p * v for p, v in zip(powers, VALUES, strict=True)) / sum(powers)


def states(corrected: bool = True) -> list[State]:
    """Maximum, sum and numerator after each block."""
    top, total, mixed, found = -math.inf, 0.0, 0.0, []
    for start in range(0, len(SCORES), BLOCK):
        scores, values = SCORES[start : start + BLOCK], VALUES[start : start + BLOCK]
        new = max(top, *scores)
        factor = math.exp(top - new) if corrected else 1.0
        powers = [math.exp(s - new) for s in scores]
        total = total * factor + sum(powers)
        mixed = mixed * factor + sum(p * v for p, v in zip(powers, values, strict=True))
        top = new
        found.append((top, total, mixed))
    return found


def numbers() -> dict[str, Any]:
    one, two = states()
    _, total, mixed = states(corrected=False)[-1]
    keys = enumerate(zip(SCORES, VALUES, strict=True))
    return {
        "keys": [(i, f"{s:g}", math.exp(s), f"{v:g}") for i, (s, v) in keys],
        "whole": whole(),
        "one": one,
        "two": two,
        "factor": math.exp(one[0] - two[0]),
        "blocks": two[2] / two[1],
        "uncorrected": mixed / total,
    }

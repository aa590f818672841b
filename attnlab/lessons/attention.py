"""One head of causal attention by hand: S = 3 tokens, hd = 2 features."""

import math
from collections.abc import Sequence
from typing import Any

Row = tuple[float, ...]
Q: tuple[Row, ...] = ((1, 0), (0, 2), (1, 1))
K: tuple[Row, ...] = ((1, 1), (2, 0), (1, 2))
V: tuple[Row, ...] = ((4, 0), (0, 4), (8, 8))
HD = 2


def dot(a: Row, b: Row) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def scores() -> list[Row]:
    """q_i . k_j, a row for each query."""
    return [tuple(dot(q, k) for k in K) for q in Q]


def scaled(row: Row) -> Row:
    """Scores over sqrt(hd)."""
    return tuple(score / math.sqrt(HD) for score in row)


def visible(row: Row, query: int) -> Row:
    """Scores over sqrt(hd), -inf for keys that come after the query."""
    return tuple(s if key <= query else -math.inf for key, s in enumerate(scaled(row)))


def softmax(row: Row) -> Row:
    top = max(row)
    powers = [math.exp(score - top) for score in row]
    return tuple(power / sum(powers) for power in powers)


def weights() -> list[Row]:
    return [softmax(visible(row, i)) for i, row in enumerate(scores())]


def mix(row: Row) -> Row:
    """The mean of the values with these weights."""
    return tuple(sum(w * v[c] for w, v in zip(row, V, strict=True)) for c in range(HD))


def by_token(rows: Sequence[Row]) -> list[Row]:
    """Each row behind its number."""
    return [(i, *row) for i, row in enumerate(rows)]


def in_four_digits(row: Row) -> str:
    return "  ".join(f"{number:.4f}" for number in row)


def numbers() -> dict[str, Any]:
    masked = [visible(row, i) for i, row in enumerate(scores())]
    first = tuple(math.exp(s) for s in masked[1])
    late = tuple(w if key <= 1 else 0.0 for key, w in enumerate(softmax(scaled(scores()[1]))))
    return {
        "queries": by_token(Q),
        "keys": by_token(K),
        "values": by_token(V),
        "scores": by_token(scores()),
        "scaled": by_token([scaled(row) for row in scores()]),
        "visible": [
            (i, *(f"{s:.4f}" if s > -math.inf else "-inf" for s in row))
            for i, row in enumerate(masked)
        ],
        "weights": by_token(weights()),
        "output": by_token([mix(row) for row in weights()]),
        "root": math.sqrt(HD),
        "powers": first,
        "total": sum(first),
        "weight": weights()[1],
        "mixed": mix(weights()[1]),
        "sharp": in_four_digits(softmax(scores()[2])),
        "late": in_four_digits(late),
        "late_sum": sum(late),
    }

"""Decoding with a cache by hand, with the numbers of the lesson on attention."""

from typing import Any

from attnlab.lessons.attention import (
    HD,
    K,
    Q,
    V,
    by_token,
    dot,
    in_four_digits,
    mix,
    scores,
    softmax,
    visible,
    weights,
)


def products(length: int, cached: bool) -> int:
    """Products of query and key features until `length` tokens are written one by one."""
    rows = (1 if cached else n for n in range(1, length + 1))
    return sum(row * n * HD for n, row in enumerate(rows, 1))


def cache_bytes(layers: int, heads: int, width: int, tokens: int, size: int = 2) -> int:
    """Of one sequence: keys and values, for each layer, head, token and feature."""
    return 2 * layers * heads * width * tokens * size


def numbers() -> dict[str, Any]:
    row = visible(scores()[2], 2)
    sizes = (cache_bytes(32, heads, 128, 4096) for heads in (32, 8))
    full, grouped = (f"{size:>13,} = {size / 2**30:g} GiB" for size in sizes)
    return {
        "keys": by_token(K[:2]),
        "values": by_token(V[:2]),
        "fit": "  ".join(f"{dot(Q[2], k):g}" for k in K),
        "scaled": in_four_digits(row),
        "weights": in_four_digits(softmax(row)),
        "output": in_four_digits(mix(softmax(row))),
        "whole": mix(weights()[2]),
        "products": [(n, products(n, False), products(n, True)) for n in (3, 10, 100)],
        "full": full,
        "grouped": grouped,
    }

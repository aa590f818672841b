"""T5's relative buckets by hand: 8 buckets, distances up to 16."""

import math
from typing import Any

BUCKETS, FARTHEST = 8, 16


def bucket(distance: int, buckets: int = BUCKETS) -> int:
    """Of a key `distance` positions back, 0 or more: half of the buckets are exact."""
    exact = buckets // 2
    if distance < exact:
        return distance
    share = math.log(distance / exact) / math.log(FARTHEST / exact)
    return min(exact + int(share * (buckets - exact)), buckets - 1)


def bucket_of_both(offset: int) -> int:
    """Of a key at `offset` = key - query; keys behind the query have the upper half."""
    half = BUCKETS // 2
    return bucket(abs(offset), half) + (half if offset > 0 else 0)


def numbers() -> dict[str, Any]:
    share = math.log(6 / 4) / math.log(16 / 4)
    offsets = (-9, -3, -2, -1, 0, 1, 2, 3, 9)
    return {
        "share": share,
        "four_shares": share * 4,
        "six": bucket(6),
        "sixteen": bucket(16),
        "distances": [(b, _distances(b)) for b in range(BUCKETS)],
        "both": [("bucket", *map(bucket_of_both, offsets))],
    }


def _distances(wanted: int) -> str:
    found = [n for n in range(40) if bucket(n) == wanted]
    if found[-1] == 39:
        return f"{found[0]} and more"
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"

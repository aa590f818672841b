"""T5's relative buckets by hand: 8 buckets, distances up to 16."""

import math

from attnlab.lessons.base import Grid, Lesson, Step, questions_in

TITLE = "T5's buckets by hand"
BUCKETS, FARTHEST = 8, 16


def lesson() -> Lesson:
    return Lesson(
        id="t5-buckets",
        title=TITLE,
        about="T5 (Raffel et al. 2020) adds a learned number to each score. Near distances have "
        "one each, far ones share: a row of a small table for each bucket. T5 itself has 32 "
        "buckets up to 128; here there are 8 up to 16.",
        steps=(
            _near(),
            _far(),
            _table(),
            _both(),
            _sign(),
            Step(title="What people ask", questions=questions_in(QUESTIONS)),
        ),
        next="attnlab list positions has wrong ones to fix, such as left-is-right",
    )


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


def _near() -> Step:
    return Step(
        title="Near distances have a bucket each",
        text="In a decoder a key lies n >= 0 positions before the query. The first half of the "
        "buckets, 4 of 8, are for n = 0, 1, 2, 3.",
    )


def _far() -> Step:
    share = math.log(6 / 4) / math.log(16 / 4)
    return Step(
        title="Far ones share, by the logarithm",
        lines=(
            "4 + int(log(n / 4) / log(16 / 4) * 4), at most 7",
            f"n = 6:   log(1.5) / log(4) = {share:.4f}    4 + int({share * 4:.4f}) = {bucket(6)}",
            f"n = 16:  log(4) / log(4) = 1         4 + int(4) = 8, so {bucket(16)}",
        ),
    )


def _table() -> Step:
    return Step(
        title="All of them",
        grids=(
            Grid(
                columns=("bucket", "distances"),
                rows=tuple((b, _distances(b)) for b in range(BUCKETS)),
            ),
        ),
        after="Everything from 12 on is one bucket: beyond that, only far is known.",
    )


def _distances(wanted: int) -> str:
    found = [n for n in range(40) if bucket(n) == wanted]
    if found[-1] == 39:
        return f"{found[0]} and more"
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _both() -> Step:
    offsets = (-9, -3, -2, -1, 0, 1, 2, 3, 9)
    return Step(
        title="An encoder looks both ways",
        text="Half of the buckets are for keys before the query and at it, half for keys after it. "
        "So each side has 4: two exact, two shared.",
        grids=(
            Grid(
                columns=("key - query", *map(str, offsets)),
                rows=(("bucket", *map(bucket_of_both, offsets)),),
            ),
        ),
    )


def _sign() -> Step:
    return Step(
        title="The sign",
        text="key - query, not query - key. With the sign turned, past and future change places; "
        "in a decoder, where only the past is seen, all of it becomes bucket 0.",
    )


QUESTIONS = """
Are scores scaled as well?
Not in T5: there is no sqrt(hd), the weights are drawn smaller instead. The bias is added to plain
scores.

How many tables are there?
One row of H numbers for each bucket, in the first layer; the other layers use the same one.

And with a cache?
The query stands at the end: its offsets are -kept ... 0. Computed for one query alone, all keys are
at offsets 0, 1, 2 ...

Why not one number for each distance?
There would be none for distances that training never had. A bucket of all far ones is trained.
"""

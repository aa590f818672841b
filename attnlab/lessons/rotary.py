"""Rotary positions by hand: hd = 4 features, two pairs."""

import math

from attnlab.lessons.base import Grid, Lesson, Step, questions_in

TITLE = "Rotary positions by hand"
Row = tuple[float, ...]
HD, BASE = 4, 100.0  # usually 10000: with 100 the slow pair can be seen to turn
QUERY: Row = (1, 0, 1, 0)
KEY: Row = (1, 1, 0, 1)


def lesson() -> Lesson:
    return Lesson(
        id="rotary",
        title=TITLE,
        about="RoPE (Su et al. 2021) turns queries and keys by their positions, so that their dot "
        "product depends on the distance alone. Nothing is added, and nothing is learned.",
        steps=(
            _angles(),
            _turn(),
            _products(),
            _pairing(),
            _length(),
            Step(title="What people ask", questions=questions_in(QUESTIONS)),
        ),
        next="attnlab position rotary shows a larger one; attnlab start rotary-from-scratch has "
        "you write it",
    )


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


def _angles() -> Step:
    return Step(
        title="An angle for each pair",
        text="w_i = base^(-2i/hd), as in the sinusoidal table. At position p pair i is turned by "
        "p * w_i. Here the base is 100.",
        grids=(
            Grid(
                columns=("p", "p * w_0", "p * w_1"),
                rows=tuple((p, *(p * w for w in frequencies())) for p in range(4)),
                digits=1,
            ),
        ),
    )


def _turn() -> Step:
    c, s = math.cos(1), math.sin(1)
    return Step(
        title="Two numbers turn",
        text="(a, b) becomes (a cos - b sin, a sin + b cos). Features 0 and 2 are pair 0 here, 1 "
        "and 3 are pair 1. The query (1, 0, 1, 0) at position 1:",
        lines=(
            f"pair 0:  (1, 1) becomes ({c:.4f} - {s:.4f}, {s:.4f} + {c:.4f})",
            f"                         = ({c - s:.4f}, {s + c:.4f})",
            "pair 1:  (0, 0) stays (0, 0)",
        ),
        grids=(
            Grid(
                columns=("p", "0", "1", "2", "3", "length"),
                rows=tuple((p, *turn(QUERY, p), math.hypot(*turn(QUERY, p))) for p in range(4)),
                digits=4,
            ),
        ),
        after="Lengths stay: a test of every implementation.",
    )


def _score_table(mixed: bool) -> Grid:
    return Grid(
        columns=("m", "n = 0", "n = 1", "n = 2", "n = 3"),
        rows=tuple((m, *(score(m, n, mixed) for n in range(4))) for m in range(4)),
        digits=4,
    )


def _products() -> Step:
    return Step(
        title="Only the distance matters",
        text="The score of the query at position m with the key (1, 1, 0, 1) at position n:",
        grids=(_score_table(mixed=False),),
        after="Diagonals are constant: m - n is all that counts.",
    )


def _pairing() -> Step:
    return Step(
        title="Two ways to pair, and never both",
        text="Llama pairs feature i with i + hd/2, GPT-J 2i with 2i + 1. Either is right, as long "
        "as query and key agree, and the checkpoint. With one of each:",
        grids=(_score_table(mixed=True),),
        after="The diagonals are gone, and no shape tells.",
    )


def _length() -> Step:
    slow = 2 * math.pi / frequencies()[-1]
    return Step(
        title="How far it reaches",
        lines=(
            f"the slow pair is back after 2 pi / {frequencies()[-1]:g} = {slow:.1f} positions",
            f"with base 10000 and hd = 128: {2 * math.pi * 10000 ** (126 / 128):,.0f} positions",
        ),
        after="A model that never saw a slow pair turn has not learned what it means: longer texts "
        "need slower frequencies, or positions that are divided.",
    )


QUESTIONS = """
Why are values not turned?
They carry what is passed on, not where it stands. Turned, outputs would depend on positions.

Is it applied before or after the split into heads?
After: the pairs are within one head, with hd and not D in the exponent.

Does the score fall with the distance?
Not by itself. The paper bounds a sum that decays; single scores swing.

Where does half precision hurt?
In positions and angles: bfloat16 has no 257. Compute both in float32, and round cosine and sine.

What is turned with a KV cache?
The new query and key, by their position in the whole text. Keys are kept turned.
"""

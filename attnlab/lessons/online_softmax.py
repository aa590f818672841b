"""The softmax of attention in pieces, by hand: four keys in blocks of two."""

import math

from attnlab.lessons.base import Grid, Lesson, Step, questions_in

TITLE = "Online softmax by hand"
SCORES = (1.0, 3.0, 2.0, 5.0)
VALUES = (10.0, 20.0, 30.0, 40.0)
BLOCK = 2
State = tuple[float, float, float]


def lesson() -> Lesson:
    return Lesson(
        id="online-softmax",
        title=TITLE,
        about="FlashAttention never has a row of scores as a whole: it reads keys block by block, "
        "and corrects what it has (Milakov and Gimelshein 2018; Dao et al. 2022). One query, four "
        "keys, blocks of two; a value is one number here.",
        steps=(
            _whole(),
            _carried(),
            _blocks(),
            _why(),
            _wrong(),
            Step(title="What people ask", questions=questions_in(QUESTIONS)),
        ),
        next="attnlab list attention has attention that reads its keys in blocks, to fix",
    )


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


def _whole() -> Step:
    powers = [math.exp(s) for s in SCORES]
    return Step(
        title="All at once",
        grids=(
            Grid(
                columns=("key", "score", "exp(score)", "value"),
                rows=tuple(
                    (i, f"{s:g}", p, f"{v:g}")
                    for i, (s, p, v) in enumerate(zip(SCORES, powers, VALUES, strict=True))
                ),
                digits=4,
            ),
        ),
        proof=(f"output = sum of exp(score) * value / sum of exp(score) = {whole():.6f}",),
    )


def _carried() -> Step:
    return Step(
        title="Three numbers are carried",
        text="m, the largest score so far; l, the sum of exp(score - m); o, the sum of "
        "exp(score - m) * value. At first m = -inf, l = 0, o = 0.",
        lines=(
            "m' = max(m, scores of the block)",
            "l' = l * exp(m - m') + sum of exp(score - m')",
            "o' = o * exp(m - m') + sum of exp(score - m') * value",
        ),
        after="exp(m - m') is what the old terms were too large by. The output is o / l, at the "
        "end.",
    )


def _blocks() -> Step:
    (m1, l1, o1), (m2, l2, o2) = states()
    return Step(
        title="Block by block",
        lines=(
            f"scores 1, 3:   m = 3   l = exp(-2) + 1 = {l1:.4f}",
            f"               o = 10 exp(-2) + 20 = {o1:.4f}",
            f"scores 2, 5:   m = 5   exp(3 - 5) = {math.exp(m1 - m2):.4f}",
            f"               l = {l1:.4f} * {math.exp(m1 - m2):.4f} + exp(-3) + 1 = {l2:.4f}",
            f"               o = {o1:.4f} * {math.exp(m1 - m2):.4f} + 30 exp(-3) + 40 = {o2:.4f}",
            f"o / l = {o2 / l2:.6f}",
        ),
        after="The same number, and never more than two scores in memory.",
    )


def _why() -> Step:
    return Step(
        title="Why the maximum is carried",
        text="exp(89) is infinite in float32, exp(12) in float16. With the largest score taken "
        "off, no power is above 1, and at least one is 1: l is never 0.",
    )


def _wrong() -> Step:
    _, total, mixed = states(corrected=False)[-1]
    return Step(
        title="Without the correction",
        text="If l and o are not multiplied by exp(m - m'), early keys count too much:",
        lines=(f"o / l = {mixed / total:.6f} in place of {whole():.6f}",),
        after="It is right as long as the largest score comes in the first block: a test with "
        "scores that fall does not see it.",
    )


QUESTIONS = """
What of a block in which every key is hidden?
Its maximum is -inf, and -inf - -inf is NaN. Skip the block, or take 0 for the maximum there.

How much memory does it take?
Three numbers for each query and the block itself: S in place of S x S. The work is the same.

How does backward get along without the weights?
It keeps m + log(l) for each row, and computes the weights anew, block by block.

Is the result the same to the last bit?
No: sums are taken in another order. It differs by rounding, as two kernels do.
"""

"""One head of causal attention by hand: S = 3 tokens, hd = 2 features."""

import math

from attnlab.lessons.base import Cell, Grid, Lesson, Step, questions_in

TITLE = "Attention by hand"
Row = tuple[float, ...]
Q: tuple[Row, ...] = ((1, 0), (0, 2), (1, 1))
K: tuple[Row, ...] = ((1, 1), (2, 0), (1, 2))
V: tuple[Row, ...] = ((4, 0), (0, 4), (8, 8))
HD = 2


def lesson() -> Lesson:
    return Lesson(
        id="attention",
        title=TITLE,
        about="softmax(Q K^T / sqrt(hd)) V for one sequence and one head. Queries, keys and values "
        "are given; in a model each is a linear layer of the tokens.",
        steps=(
            _given(),
            _scores(),
            _scale(),
            _mask(),
            _softmax(),
            _mix(),
            _wrong(),
            Step(title="What people ask", questions=questions_in(QUESTIONS)),
        ),
        next="attnlab lesson kv-cache goes on with these numbers; "
        "attnlab run peeks-ahead has a wrong mask to fix",
    )


def dot(a: Row, b: Row) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def scores() -> list[Row]:
    """q_i . k_j, a row for each query."""
    return [tuple(dot(q, k) for k in K) for q in Q]


def visible(row: Row, query: int) -> Row:
    """Scores over sqrt(hd), -inf for keys that come after the query."""
    scaled = (score / math.sqrt(HD) for score in row)
    return tuple(s if key <= query else -math.inf for key, s in enumerate(scaled))


def softmax(row: Row) -> Row:
    top = max(row)
    powers = [math.exp(score - top) for score in row]
    return tuple(power / sum(powers) for power in powers)


def weights() -> list[Row]:
    return [softmax(visible(row, i)) for i, row in enumerate(scores())]


def mix(row: Row) -> Row:
    """The mean of the values with these weights."""
    return tuple(sum(w * v[c] for w, v in zip(row, V, strict=True)) for c in range(HD))


def table(name: str, rows: list[Row] | tuple[Row, ...], columns: str, digits: int = 4) -> Grid:
    return Grid(
        columns=("token", *columns.split()),
        rows=tuple((i, *row) for i, row in enumerate(rows)),
        title=name,
        digits=digits,
    )


def _given() -> Step:
    grids = (("queries", Q), ("keys", K), ("values", V))
    return Step(
        title="What is given",
        text="A query asks, a key answers, a value is what is passed on. Each has hd = 2 features.",
        grids=tuple(table(name, rows, "0 1") for name, rows in grids),
    )


def _scores() -> Step:
    return Step(
        title="A score for each query and key",
        text="The dot product: how well the key fits what the query asks.",
        lines=("token 2 asks token 1:   (1, 1) . (2, 0) = 1*2 + 1*0 = 2",),
        grids=(table("", scores(), "key_0 key_1 key_2"),),
    )


def _scale() -> Step:
    rows = [tuple(s / math.sqrt(HD) for s in row) for row in scores()]
    return Step(
        title="Divided by sqrt(hd)",
        text="A sum of hd products of independent numbers of variance 1 has variance hd. Divided "
        "by sqrt(hd) it has variance 1 again, whatever the width of a head.",
        lines=("sqrt(2) = 1.4142",),
        grids=(table("", rows, "key_0 key_1 key_2"),),
    )


def _mask() -> Step:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (i, *(f"{s:.4f}" if s > -math.inf else "-inf" for s in visible(row, i)))
        for i, row in enumerate(scores())
    )
    return Step(
        title="The future is hidden",
        text="Query i may look at keys 0 ... i. The others get -inf, before the softmax.",
        grids=(Grid(columns=("token", "key_0", "key_1", "key_2"), rows=rows),),
    )


def _softmax() -> Step:
    first = [math.exp(s) for s in visible(scores()[1], 1)]
    powers = f"exp(1.4142) = {first[0]:.4f}   exp(0) = {first[1]:.4f}"
    return Step(
        title="Softmax along the keys",
        text="exp of each score, over the sum of its row. exp(-inf) is 0.",
        lines=(
            f"token 1:   {powers}   sum = {sum(first):.4f}",
            f"           {first[0]:.4f} / {sum(first):.4f} = {first[0] / sum(first):.4f}",
        ),
        grids=(table("", weights(), "key_0 key_1 key_2"),),
        after="Each row sums to 1. The first token has one key to look at: its weight is 1.",
    )


def _mix() -> Step:
    w = weights()[1]
    terms = f"{w[0]:.4f} * (4, 0) + {w[1]:.4f} * (0, 4)"
    return Step(
        title="The mean of the values",
        lines=(f"token 1:   {terms} = ({mix(w)[0]:.4f}, {mix(w)[1]:.4f})",),
        grids=(table("", [mix(w) for w in weights()], "0 1"),),
        after="Token 0 gets its own value, (4, 0): that is a quick test of any causal attention.",
    )


def _wrong() -> Step:
    bare = softmax(scores()[2])
    late = tuple(
        w if key <= 1 else 0.0
        for key, w in enumerate(softmax(tuple(s / math.sqrt(HD) for s in scores()[1])))
    )
    return Step(
        title="What mistakes look like",
        text="Nothing crashes, and each row still looks like weights.",
        lines=(
            "no scale, token 2:            " + "  ".join(f"{w:.4f}" for w in bare),
            "mask after softmax, token 1:  "
            + "  ".join(f"{w:.4f}" for w in late)
            + f"   sum {sum(late):.4f}",
        ),
        after="Without the scale rows are too sharp; masked too late, they do not sum to 1.",
    )


QUESTIONS = """
Why sqrt(hd), and not sqrt(D)?
The sum runs over the hd features of one head. With 16 heads, sqrt(D) divides by 4 too much.

Why not multiply the weights by the mask?
What is hidden still stands in the denominator, so a row sums to less than 1, and the less a token
may see, the more it loses.

What if a row has no key at all?
All its scores are -inf, and 0 / 0 is NaN. Decide what such a row is to be, usually zeros, and write
it in after the softmax.

Along which axis is the softmax?
The keys': the last one of (B, H, Sq, Sk). Along the queries each column sums to 1, and tokens share
keys out among themselves.

What does a second head change?
It has features of its own: (B, S, D) is viewed as (B, S, H, hd), then transposed to (B, H, S, hd).
A view straight to (B, H, S, hd) has the same shape, and mixes tokens.
"""

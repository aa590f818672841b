"""Sinusoidal positions by hand: D = 4 columns, S = 3 positions, and no number left out."""

import math

from attnlab.lessons.base import Grid, Lesson, Step, questions_in

TITLE = "Sinusoidal positions by hand"
D, S, BASE = 4, 3, 10000.0
Row = list[float]


def lesson() -> Lesson:
    return Lesson(
        id="sinusoidal",
        title=TITLE,
        about='The positional encoding of "Attention Is All You Need" (section 3.5), small enough '
        "to work out with a pocket calculator. Angles are in radians; counting starts at 0.",
        steps=(
            _formula(),
            _frequencies(),
            _angles(),
            _waves(),
            _table(),
            _lengths(),
            _rotation(),
            _addition(),
            _decades(),
            Step(title="What people ask", questions=questions_in(QUESTIONS)),
        ),
        next="attnlab position sinusoidal shows a larger table; "
        "attnlab run beats-out-of-step has a wrong one to fix",
    )


# ---------------------------------------------------------------- the arithmetic


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


def plus(a: Row, b: Row) -> Row:
    return [x + y for x, y in zip(a, b, strict=True)]


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


# ---------------------------------------------------------------- the steps


def _formula() -> Step:
    return Step(
        title="What is to be made",
        text="A table with one row for each position p, and with D columns. Columns come in pairs: "
        "pair i owns columns 2i and 2i+1. Here D = 4, so there are two pairs, 0 and 1, and S = 3, "
        "so there are three positions: 0, 1 and 2.",
        lines=(
            "PE[p, 2i]   = sin(p * w_i)",
            "PE[p, 2i+1] = cos(p * w_i)        w_i = 10000^(-2i/D)",
        ),
    )


def _frequencies() -> Step:
    w = frequencies()
    return Step(
        title="A frequency for each pair",
        text="How many radians pair i turns from one position to the next. Its wavelength is the "
        "number of positions until it is back where it began, 2 pi / w_i.",
        lines=(
            f"w_0 = 10000^(-0/4) = 10000^0    = {w[0]:g}",
            f"w_1 = 10000^(-2/4) = 10000^-0.5 = 1 / sqrt(10000) = {w[1]:g}",
        ),
        grids=(
            Grid(
                columns=("pair i", "columns", "w_i", "wavelength"),
                rows=tuple(
                    (i, f"{2 * i}, {2 * i + 1}", v, 2 * math.pi / v) for i, v in enumerate(w)
                ),
            ),
        ),
        after="Pair 0 is the fast one, the last pair the slow one.",
    )


def _angles() -> Step:
    w = frequencies()
    return Step(
        title="An angle for each position and pair",
        text="Position times frequency.",
        lines=tuple(
            f"p = {p}:   {p} * {w[0]:g} = {p * w[0]:g}     {p} * {w[1]:g} = {p * w[1]:g}"
            for p in range(S)
        ),
        grids=(
            Grid(
                columns=("p", "p * w_0", "p * w_1"),
                rows=tuple((p, *(p * v for v in w)) for p in range(S)),
                digits=2,
            ),
        ),
    )


def _waves() -> Step:
    w = frequencies()
    return Step(
        title="Sine and cosine of each angle",
        grids=tuple(
            Grid(
                columns=("p", *(f"{f.__name__}(p * w_{i})" for i in range(2))),
                rows=tuple((p, *(f(p * v) for v in w)) for p in range(S)),
            )
            for f in (math.sin, math.cos)
        ),
        after="A hundredth of a radian is nearly its own sine, and its cosine is nearly 1: the "
        "slow pair has hardly moved after three positions.",
    )


def _table() -> Step:
    return Step(
        title="The table: sine and cosine in turn",
        text="Columns 0 and 1 are pair 0, columns 2 and 3 are pair 1. Some code puts all sines "
        "first and then all cosines: the same numbers in other columns, and a checkpoint means one "
        "of the two.",
        grids=(
            Grid(
                columns=("p", "0: sin w_0", "1: cos w_0", "2: sin w_1", "3: cos w_1"),
                rows=tuple((p, *encoding(p)) for p in range(S)),
            ),
        ),
        after="Row 0 is always 0, 1, 0, 1: sin 0 and cos 0.",
    )


def _lengths() -> Step:
    pe = [encoding(p) for p in range(S)]
    near, far = dot(pe[0], pe[1]), dot(pe[0], pe[2])
    steps = minus(pe[1], pe[0]), minus(pe[2], pe[1])
    return Step(
        title="Lengths, dot products, differences",
        text="sin^2 + cos^2 = 1 for each pair, so every row has the length sqrt(D/2). The dot "
        "product of two rows is the sum of cos(k * w_i), where k is how far they are apart.",
        lines=(
            *(f"|PE[{p}]| = {norm(row):.5f} = sqrt(2)" for p, row in enumerate(pe)),
            f"PE[0] . PE[1] = cos 1 + cos 0.01 = {near:.5f}",
            f"PE[1] . PE[2] = cos 1 + cos 0.01 = {dot(pe[1], pe[2]):.5f}    one apart, the same",
            f"PE[0] . PE[2] = cos 2 + cos 0.02 = {far:.5f}    two apart, less",
        ),
        grids=(
            Grid(
                columns=("difference", "0", "1", "2", "3", "length"),
                rows=(
                    ("PE[1] - PE[0]", *steps[0], norm(steps[0])),
                    ("PE[2] - PE[1]", *steps[1], norm(steps[1])),
                ),
            ),
        ),
        after="The two differences are different vectors of the same length: length and dot "
        "product depend on the distance alone, the difference itself does not.",
    )


def _rotation() -> Step:
    m, pe = rotation(1), [encoding(p) for p in range(S)]
    c, s = m[0][0], m[0][1]
    return Step(
        title="One position further is one rotation",
        text="There is one matrix M_1 that takes every row to the next, whatever p is: each pair "
        "is turned by its own w_i.",
        grids=(
            Grid(
                title="M_1",
                columns=("", "0", "1", "2", "3"),
                rows=tuple((str(r), *m[r]) for r in range(D)),
            ),
        ),
        proof=tuple(
            f"PE[{p + 1}][0] = {c:.5f} * {pe[p][0]:.5f} + {s:.5f} * {pe[p][1]:.5f}"
            f" = {dot(m[0], pe[p]):.5f}"
            for p in range(S - 1)
        ),
        after="That is sin(a + 1) = cos 1 sin a + sin 1 cos a. It needs the cosine of the same "
        "angle, which is why it stands in the next column.",
    )


def _addition() -> Step:
    x, pe = tokens(1, 2), encoding(2)
    sums = [
        Grid(
            title=f"sequence {b}: x + PE",
            columns=("p", "0", "1", "2", "3"),
            rows=tuple((p, *plus(tokens(b, p), encoding(p))) for p in range(S)),
        )
        for b in range(2)
    ]
    return Step(
        title="Added to a batch: B = 2, L = 3, C = 4",
        text="x has shape (2, 3, 4), the table (1, 3, 4): the same rows are added to both "
        "sequences. Entry x[b, p, c] is b.pc here, so that a number says where it stands.",
        grids=(
            *(
                Grid(
                    title=f"sequence {b}: x",
                    columns=("p", "0", "1", "2", "3"),
                    rows=tuple((p, *tokens(b, p)) for p in range(S)),
                    digits=2,
                )
                for b in range(2)
            ),
            *sums,
        ),
        proof=(f"sequence 1, p = 2, column 0: {x[0]:.2f} + {pe[0]:.5f} = {x[0] + pe[0]:.5f}",),
        after="The result is (2, 3, 4) again. A module that returns x + PE must not be added to x "
        "once more: that gives 2x + PE.",
    )


def _decades() -> Step:
    d, places = 8, (1, 10, 100, 1000)
    w = frequencies(d)
    return Step(
        title="Wider: D = 8, positions 1, 10, 100, 1000",
        text="Four pairs, each ten times slower than the one before.",
        lines=tuple(f"w_{i} = 10000^(-{2 * i}/8) = {v:g}" for i, v in enumerate(w)),
        grids=(
            Grid(
                title="angles",
                columns=("p", *(f"p * w_{i}" for i in range(d // 2))),
                rows=tuple((p, *(p * v for v in w)) for p in places),
                digits=3,
            ),
            Grid(
                title="the table",
                columns=("p", *(f"{c}" for c in range(d))),
                rows=tuple((p, *encoding(p, d)) for p in places),
                digits=4,
            ),
        ),
        after="The angles 1 stand on a diagonal, and so do the pairs 0.8415, 0.5403: pair i at "
        "position 10^i is what pair 0 is at position 1. A fast pair has wound round many times by "
        "then and cannot tell far positions apart alone; the slow ones can.",
    )


# ---------------------------------------------------------------- questions

# Blocks of lines: the question is the first.
QUESTIONS = """
Why sine and cosine, and not one of them?
One alone takes each value twice in a period, and the length of a row would wander. With both, a
pair is a point on a circle: its length is 1, and k positions further is a turn by k * w_i, the
same for every p.

Why one frequency for each pair, and not for each column?
sin^2 + cos^2 = 1 and the rotation hold for one and the same angle. With a frequency of its own for
each column, lengths and dot products change along the sequence.

Must the frequencies fall? Why not in reversed or random order?
Any order of the pairs gives the same lengths, dot products and rotations, and the linear layers
that follow can learn any of them. Falling is a convention. But training and use must agree on it,
so it matters for a checkpoint.

Does the difference of two rows depend on their distance alone?
No: step 6 shows two that are one apart and differ. Its length does, and so does the dot product.

Then attention sees the distance alone?
Not for certain. It multiplies the rows by W_q and W_k first, and (W_q PE[i]) . (W_k PE[j]) depends
on i and j in general.

Is the last frequency 1/10000?
No: it is 10000^(-(D-2)/D). That is 0.01 at D = 4 and 1.334e-4 at D = 64, where the longest
wavelength is 47,117 positions; at D = 512 it is 60,611.

Is 10000 the greatest length?
No. It sets how slow the slow pairs are. The table can be computed for any position.

So a model copes with longer texts than it was trained on?
The table does: its rows stay finite and different. A trained model mostly does not; its loss rises
soon after the trained length (Press et al. 2022, who propose ALiBi instead).

Why added, and not put beside the embedding?
W applied to both side by side is W_1 x + W_2 PE: a sum too, with a matrix for each. Adding shares
one matrix and keeps the width D.

Why are embeddings multiplied by sqrt(D) first?
To bring them to the size of the positions. At D = 512 a row drawn with deviation 0.02 has length
0.45, times sqrt(512) 10.2; a position has sqrt(256) = 16. It keeps no variance: it multiplies it
by D.

And without any positions, what would attention know of the order?
Nothing, unless a causal mask tells: it is permutation-equivariant. Permute the inputs, and the
outputs are permuted in the same way. (Invariant would mean that they stay as they were.)

Who uses this table?
The original Transformer. BERT and GPT-2 learn a table. LLaMA turns queries and keys by the angles
p * w_i inside attention (RoPE), and T5 adds a learned bias to the scores.

Is float32 enough?
For the table, yes; for the angles only at small positions: near 10,000 a float32 angle is off by
about 0.0005. Compute in float64, then convert. Taking a float32 angle modulo 2 pi repairs nothing,
the digits are gone already.

What if D is odd?
The last column would be half a pair. Refuse it, or make D - 1 columns and one of zeros.
"""

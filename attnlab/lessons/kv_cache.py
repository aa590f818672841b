"""Decoding with a cache by hand, with the numbers of the lesson on attention."""

from attnlab.lessons.attention import (
    HD,
    K,
    Q,
    V,
    dot,
    mix,
    scores,
    softmax,
    table,
    visible,
    weights,
)
from attnlab.lessons.base import Grid, Lesson, Step, questions_in

TITLE = "A KV cache by hand"


def lesson() -> Lesson:
    return Lesson(
        id="kv-cache",
        title=TITLE,
        about="A decoder writes one token at a time. Under a causal mask, what a token was does "
        "not depend on what follows: its key and value can be kept. The numbers are those of "
        "attnlab lesson attention.",
        steps=(
            Step(
                title="A prompt of two tokens",
                text="Both go through the layer at once, with the mask. Their keys and values are "
                "kept.",
                grids=(table("keys kept", K[:2], "0 1"), table("values kept", V[:2], "0 1")),
            ),
            _step(),
            _without_mask(),
            _work(),
            _bytes(),
            _offset(),
            Step(title="What people ask", questions=questions_in(QUESTIONS)),
        ),
        next="attnlab start attention-with-a-cache has you write one; "
        "attnlab run fine-word-by-word has a wrong one to fix",
    )


def products(length: int, cached: bool) -> int:
    """Products of query and key features until `length` tokens are written one by one."""
    rows = (1 if cached else n for n in range(1, length + 1))
    return sum(row * n * HD for n, row in enumerate(rows, 1))


def cache_bytes(layers: int, heads: int, width: int, tokens: int, size: int = 2) -> int:
    """Of one sequence: keys and values, for each layer, head, token and feature."""
    return 2 * layers * heads * width * tokens * size


def _step() -> Step:
    row = visible(scores()[2], 2)
    fit = "  ".join(f"{dot(Q[2], k):g}" for k in K)
    return Step(
        title="The third token",
        text="Only the new token goes through the linear layers. Its key and value are put behind "
        "those that are kept, and its query meets all three keys.",
        lines=(
            f"scores        {fit}",
            "over sqrt(2)  " + "  ".join(f"{s:.4f}" for s in row),
            "weights       " + "  ".join(f"{w:.4f}" for w in softmax(row)),
            "output        " + "  ".join(f"{v:.4f}" for v in mix(softmax(row))),
        ),
        after="The last row of the whole pass is "
        + ", ".join(f"{v:.4f}" for v in mix(weights()[2]))
        + ": the same. That is the test of any cache.",
    )


def _without_mask() -> Step:
    return Step(
        title="When a mask is needed",
        text="One new token may see everything: no mask. Several new ones may not see each other's "
        "future: with p tokens kept, query i of the piece sees keys 0 ... p + i.",
        lines=("p = 1, a piece of 2:   1 1 0", "                       1 1 1"),
        after="A triangle of the piece's own size, or is_causal=True with more keys than queries, "
        "hides the wrong keys: it starts at the top left corner.",
    )


def _work() -> Step:
    lengths = (3, 10, 100)
    return Step(
        title="What it saves",
        text="Without a cache each new token repeats all rows. Products of query and key features "
        "until S tokens are written:",
        grids=(
            Grid(
                columns=("S", "without", "with"),
                rows=tuple((n, products(n, False), products(n, True)) for n in lengths),
            ),
        ),
        after="S^3 becomes S^2; the linear layers see each token once.",
    )


def _bytes() -> Step:
    sizes = (cache_bytes(32, heads, 128, 4096) for heads in (32, 8))
    full, grouped = (f"{size:>13,} = {size / 2**30:g} GiB" for size in sizes)
    return Step(
        title="What it costs",
        text="2 (keys and values) x layers x key heads x hd x tokens x bytes of a number, for each "
        "sequence.",
        lines=(
            f"32 layers, 32 heads of 128, 4096 tokens, 2 bytes:  {full}",
            f"the same with 8 key heads:                         {grouped}",
        ),
    )


def _offset() -> Step:
    return Step(
        title="Positions go on",
        text="The third token stands at position 2, also where it comes alone. A position that is "
        "counted in the piece starts at 0 again with every step, and each word is the first.",
        lines=("positions = kept + arange(new)        2 + (0) = (2)",),
    )


QUESTIONS = """
Why are queries not kept?
Query i is used in row i alone, and row i is done.

Are keys kept before or after rotation?
After: a key's position never changes. Kept before, all of them have to be rotated in every step.

What does beam search do to a cache?
Row b goes on from row parents[b]: reorder keys and values along the batch, in every layer.

When does a cache give other numbers than one pass?
With a wrong offset, a piece without its mask, keys and values joined along the heads, a cache of
the prompt before, or in half precision by rounding alone.
"""

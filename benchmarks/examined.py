"""Warnings on released models that were looked at by hand, and what came of them."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["bug", "intended"]


class Examined(NamedTuple):
    """One warning, or property that does not hold. Lines move from release to release."""

    where: str  # the end of the file's path; for a property, the family
    rule: str  # or property
    verdict: Verdict
    told: str  # what is wrong, or why it is meant so, in Markdown


EXAMINED: tuple[Examined, ...] = (
    Examined(
        "autoformer/modeling_autoformer.py",
        "axes-order",
        "bug",
        "In evaluation the delays and their weights, one row for each sample, are repeated as "
        "`repeat(num_heads, ...)`, and meet rows in the order (B, H): heads of one sample take "
        "the delays of others. Of a small random model, another sample 0 moves the outputs of "
        "samples 1 to 4 by up to 9.8; with `repeat_interleave(num_heads)` by exactly 0.",
    ),
    Examined("autoformer", "batch-independence", "bug", "The bug above, seen from outside."),
    Examined("autoformer", "edge-shapes", "bug", "The bug above: a sample alone has other delays."),
    Examined(
        "prophetnet/modeling_prophetnet.py",
        "reshape-cut",
        "bug",
        "The n-gram streams gather their relative position scores from rows in the order (B, S, "
        "ngram, H) with indices in the order (ngram, B, H, S), and view the result as (B, ngram, "
        "H, S): position s takes scores of other positions, later ones included. Of a small "
        "random model, changing tokens 8 to 10 moves `logits_ngram` at positions 0 to 7 by up to "
        "2.1; with `permute(1, 0, 4, 2, 3)` before the gather and a view as (ngram, B, H, S) "
        "after it, by exactly 0.",
    ),
    Examined(
        "flava",
        "position-sensitivity",
        "intended",
        "The first output is that of the pictures, which the ids do not reach.",
    ),
    Examined(
        "deepseek_v4/modeling_deepseek_v4.py",
        "values-turned",
        "intended",
        "Keys and values are one tensor, turned once; the output of the attention is turned back "
        "by the angles of its query.",
    ),
    Examined(
        "inkling2/modeling_inkling2.py",
        "residual-missing",
        "intended",
        "At the beginning of a block of layers the stream begins anew; what came before is kept "
        "beside it, and an attention over these blocks takes the place of the sum.",
    ),
    Examined(
        "lilt/modeling_lilt.py",
        "unused-parameter",
        "intended",
        "Layout and text are two streams, and the last layer's layout stream goes nowhere: its "
        "weights get no gradient. The outputs carry the text alone.",
    ),
    Examined(
        "metaclip_2",
        "position-sensitivity",
        "intended",
        "The text is pooled at its end token, which random ids do not have: position 0 is taken, "
        "and a causal mask hides the others from it.",
    ),
    Examined(
        "mobilebert",
        "mask-effect",
        "intended",
        "The embedding of a token holds those of its two neighbours (`trigram_input`), which no "
        "mask takes out.",
    ),
    Examined(
        "mobilebert",
        "padding-invariance",
        "intended",
        "As above: padding is in the embedding of the last real token, by 0.01 here. Alone it has "
        "zeros there, so a padded batch differs from single sentences, as released.",
    ),
    Examined(
        "mra/modeling_mra.py",
        "unused-parameter",
        "intended",
        "Without its CUDA kernel the attention returns zeros, so on a CPU keys and values reach "
        "nothing. The documentation asks for the kernel; nothing is said when it is missing.",
    ),
)


def verdict_of(where: str, rule: str) -> Examined | None:
    """What came of this warning; None where nobody looked at it yet."""
    return next((e for e in EXAMINED if e.rule == rule and where.endswith(e.where)), None)

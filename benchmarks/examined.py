"""Warnings on released models that were looked at by hand, and what came of them."""

from __future__ import annotations

from typing import Literal, NamedTuple

from attnlab.records import Finding

Verdict = Literal["bug", "intended"]


class Examined(NamedTuple):
    """One warning. Its line is not kept: it moves from release to release."""

    file: str  # the end of the path
    rule: str
    verdict: Verdict
    told: str  # what is wrong, or why it is meant so, in Markdown


EXAMINED: tuple[Examined, ...] = (
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
)


def verdict_of(finding: Finding) -> Examined | None:
    """What came of this warning; None where nobody looked at it yet."""
    known = (e for e in EXAMINED if e.rule == finding.rule and finding.file.endswith(e.file))
    return next(known, None)

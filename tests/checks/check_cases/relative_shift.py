"""Positions that count where only distances should."""

from dataclasses import replace

from scenes import (
    ALIBI,
    BUCKETS,
    HALVES,
    KEY_ROW,
    ROPE,
    SLOPED,
    SLOPED_CAUSAL,
    T5,
    TURNED,
    TURNED_ANY,
    TURNED_HALVES,
    case,
)
from trial import ATTENTION, SELF, Case, changed

SCORES = "scores = q @ k.mT / q.shape[-1] ** 0.5"
FALLS = f"""{SCORES}
        i = torch.arange(S)
        scores = scores - 0.05 * (i[:, None] - i).abs()"""
BIASED = changed(ATTENTION, (SCORES, FALLS))
RELATIVE = replace(SELF, promises=("relative", "ordered"))
WRONG = {
    "angles that grow": case(
        ROPE,
        TURNED_ANY,
        ("torch.arange(S, dtype=torch.float64)", "torch.arange(S, dtype=torch.float64) ** 1.5"),
    ),
    "the key's position in place of the distance": case(
        ALIBI, SLOPED, ("(i - j).abs()", "(i + j) * j")
    ),
    "the middle is the origin": case(T5, BUCKETS, ("[:, None] + K - Q", "[:, None] // 2")),
    "learned positions": Case(
        changed(
            BIASED,
            (
                "B, S, D = x.shape",
                "B, S, D = x.shape\n        x = x + (torch.arange(S) * 0.3)[:, None]",
            ),
        ),
        RELATIVE,
        None,
    ),
}
RIGHT = {
    "neighbours are pairs": case(ROPE, TURNED),
    "cat(freqs, freqs) with rotate_half": case(HALVES, TURNED_HALVES),
    "all positions shifted, as by left padding": case(
        ROPE,
        replace(TURNED, promises=("relative",), position=replace(TURNED.position, kind="other")),
        ("torch.arange(S, dtype=torch.float64)", "(torch.arange(S, dtype=torch.float64) + 7)"),
    ),
    "symmetric": case(ALIBI, SLOPED),
    "a row that depends on the key alone": case(KEY_ROW, SLOPED_CAUSAL),
    "buckets": case(T5, BUCKETS),
    "attention with a bias": Case(BIASED, RELATIVE, None),
}

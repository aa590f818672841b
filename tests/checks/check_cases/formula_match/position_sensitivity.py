"""Modules that do not know where things stand."""

from dataclasses import replace

from scenes import (
    ADDED,
    ALIBI,
    LEARNED,
    LOOKUP,
    ROPE,
    ROWS,
    SLOPED,
    SUM,
    TOKENS,
    TURNED,
    TURNED_ANY,
    case,
)
from trial import ATTENTION, SELF, Case, changed

KNOWS = replace(SELF, promises=("ordered",))
PLACES = changed(ATTENTION, ("B, S, D = x.shape", "B, S, D = x.shape\n        x = x + PE[:S, :D]"))
PLACES = PLACES.replace("class M", "PE = torch.randn(99, 99)\n\nclass M")
# Of two tokens one is padding, which takes no place: a sequence of it alone is the same everywhere.
PADDED = changed(
    TOKENS,
    (
        "self.embedding(ids)",
        "(self.embedding(ids) + PE[(ids != 1).cumsum(1)])",
    ),
    ("padding_idx=3", "padding_idx=1"),
)
PADDED = PADDED.replace("class M", "PE = torch.randn(4999, 8)\n\nclass M")
TWO_TOKENS = replace(
    LOOKUP,
    sizes={**LOOKUP.sizes, "B": 1, "V": 2},
    vary=("S",),
    padding_idx=1,
    promises=("ordered",),
)
WRONG = {
    "x alone": case(LEARNED, ROWS, ("x + self.weight[: x.shape[1]]", "x + self.weight[:1]")),
    "rows come in pairs": case(
        LEARNED, ROWS, ("self.weight[: x.shape[1]]", "self.weight[torch.arange(x.shape[1]) // 2]")
    ),
    "nothing is turned": case(ROPE, TURNED_ANY, ("arange(S, ", "zeros(S, ")),
    "the same for all keys": case(ALIBI, SLOPED, ("* distance", "* distance.new_ones(Q, K)")),
    "attention without positions": Case(ATTENTION, KNOWS, None),
}
RIGHT = {
    "sinusoids": case(SUM, ADDED),
    "learned rows": case(LEARNED, ROWS),
    "turned": case(ROPE, TURNED),
    "a bias": case(ALIBI, SLOPED),
    "attention with positions": Case(PLACES, KNOWS, None),
    "padding has no place": Case(PADDED, TWO_TOKENS, None),
}

"""What the reference library does with positions and tokens passes every check that applies."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scenes import ADDED, CELLS, LOOKUP, ROWS, SLOPED, SLOPED_CAUSAL, TURNED, TURNED_HALVES
from trial import SELF, Case, tried

from attnlab.records import Contract, Position

TYPES = ("float64", "bfloat16", "float16")
IN = "from attnlab.references.{} import {}\n"


def whole(file: str, name: str) -> str:
    """The reference itself, under the name that is tried."""
    return IN.format(file, name) + f"M = {name}\n"


def part(file: str, name: str, build: str, call: str, takes: str = "x") -> str:
    """A module that holds the reference: `build` makes it, `call` uses it as `self.it`."""
    return (
        f"from torch import nn\n{IN.format(file, name)}\n"
        f"class M(nn.Module):\n    def __init__(self, **init):\n        super().__init__()\n"
        f"        self.it = {build}\n\n    def forward(self, {takes}):\n        return {call}\n"
    )


def turning(options: str = "") -> str:
    build = f"RotaryEmbedding(init['head_dim']{options})"
    return part("rotary", "RotaryEmbedding", build, "self.it.rotate(x)")


ROTATED = replace(TURNED, dtypes=TYPES)
TABLE = replace(
    ADDED, init={"d_model": "D", "max_seq_len": "M"}, dtypes=TYPES, state_dict=(), buffers=("pe",)
)
LEARNED = replace(
    ROWS, init=TABLE.init, dtypes=TYPES, state_dict=("weight",),
    position=replace(ROWS.position, beyond="error"),
)  # fmt: skip
BIAS = replace(SLOPED, dtypes=TYPES)
T5 = replace(
    SLOPED, init={"num_heads": "H", "num_buckets": 16, "max_distance": 40},
    position=Position(kind="t5", form="bias", buckets=16, distance=40),
)  # fmt: skip
T5_CAUSAL = replace(T5, init={**T5.init, "bidirectional": False},
                    position=replace(T5.position, causal=True))  # fmt: skip
GRID = replace(CELLS, init={"max_height": "R", "max_width": "C", "d_model": "D"})
XL = replace(
    SELF, promises=("causal", "ordered", "relative", "empty-rows"),
    init={"embed_dim": "D", "num_heads": "H"},
)  # fmt: skip
XL_SOURCE = part(
    "transformer_xl", "TransformerXLAttention", "TransformerXLAttention(**init)",
    "x + self.it(x, None, mask)", "x, mask=None",
)  # fmt: skip
TOKENS = replace(
    LOOKUP, init={"vocab_size": "V", "d_model": "D", "padding_idx": 3, "scale": True},
    tied=(), state_dict=("weight",),
)  # fmt: skip
TIED = replace(
    LOOKUP, init={**TOKENS.init}, output=("B", "S", "V"), state_dict=(),
    padding_idx=None,  # a head that shares the matrix does train that row
    tied=(("embedding.weight", "head.embedding.weight"),),
)  # fmt: skip
TIED_SOURCE = """
from torch import nn
from attnlab.references.embeddings import TiedHead, TokenEmbedding

class M(nn.Module):
    def __init__(self, **init):
        super().__init__()
        self.embedding = TokenEmbedding(**init)
        self.head = TiedHead(self.embedding)

    def forward(self, ids):
        return self.head(self.embedding(ids))
"""
SUM = replace(
    LOOKUP, init={"vocab_size": "V", "d_model": "D", "max_seq_len": "M"}, padding_idx=None,
    sizes={**LOOKUP.sizes, "M": 40}, tied=(), state_dict=(), promises=("dropout",
    "unbiased-dropout", "ordered"), vary=("B", "S"),
)  # fmt: skip

CASES: dict[str, tuple[str, Contract]] = {
    "sinusoidal": (whole("positional", "SinusoidalPositionalEncoding"), TABLE),
    "sinusoidal, extending": (
        part("positional", "SinusoidalPositionalEncoding",
             "SinusoidalPositionalEncoding(init['d_model'], init['max_seq_len'], beyond='extend')",
             "self.it(x)"),
        replace(TABLE, buffers=(), position=replace(TABLE.position, beyond="extend")),
    ),
    "learned": (whole("learned", "LearnedPositionalEncoding"), LEARNED),
    "rotary": (turning(), ROTATED),
    "rotary in halves": (turning(", layout='half'"), replace(TURNED_HALVES, dtypes=TYPES)),
    "rotary in part": (
        turning(", rotary_dim=4"),
        replace(ROTATED, promises=("relative",),
                position=Position(kind="other", form="rotated")),
    ),
    "alibi": (whole("alibi", "ALiBi"), BIAS),
    "alibi, causal": (
        part("alibi", "ALiBi", "ALiBi(**init, causal=True)", "self.it(x)"), SLOPED_CAUSAL
    ),
    "t5": (whole("relative", "T5RelativeBias"), T5),
    "t5, causal": (whole("relative", "T5RelativeBias"), T5_CAUSAL),
    "sinusoidal grid": (whole("grid", "SinusoidalGridEncoding"), GRID),
    "factorised grid": (whole("grid", "FactorisedGridEncoding"), GRID),
    "transformer-xl": (XL_SOURCE, XL),
    "tokens": (whole("embeddings", "TokenEmbedding"), TOKENS),
    "a tied head": (TIED_SOURCE, TIED),
    "tokens and positions": (whole("embeddings", "CombinedEmbedding"), SUM),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_reference_passes(name: str) -> None:
    """Nothing fails and nothing is beyond telling; several checks really looked."""
    source, contract = CASES[name]
    results = tried(Case(source, contract, None))
    bad = [(c.id, c.message, c.sizes) for c in results if c.outcome in ("failed", "error")]
    assert not bad
    assert sum(c.outcome == "passed" for c in results) > 6

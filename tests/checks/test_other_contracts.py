"""What was misjudged when challenges of new kinds were written: right files that were rejected, and
wrong ones that nothing had looked at."""

from dataclasses import replace

import pytest
from check_cases.cache_equals_full.prefill_equals_decode import KEPT
from scenes import ALIBI, KEY_ROW, LOOKUP, ROPE, SLOPED, SLOPED_CAUSAL, SUM, TURNED
from sources import ACROSS, CACHED, CROSS, DECODER, INNER, PACKED, ROWS
from trial import ATTENTION, ENCODING, SELF, TABLE, Case, changed, tried

from attnlab.records import Code, Input, Position

FILL = "scores = scores.masked_fill(mask[:, None], -torch.inf)"
SOFT = "weights = scores.softmax(-1)"
CAUSAL = f"""scores = scores.masked_fill(torch.ones(S, S).triu(1).bool(), -torch.inf)
        {SOFT}"""
LIMITED = changed(
    ATTENTION, (SOFT, CAUSAL), ("self, embed_dim, num_heads", "self, embed_dim, num_heads, longest")
)
WINDOW = changed(
    LIMITED,
    ("num_heads, longest", "num_heads, window"),
    ("self.H = num_heads", "self.H, self.W = num_heads, window"),
    ("triu(1).bool()", "triu(1).bool() | torch.ones(S, S).tril(-self.W).bool()"),
)
ALLOWS = Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True,
               forbids=False)  # fmt: skip
X, PLACES = SELF.inputs[0], Input(name="places", axes=("B", "S"), dtype="int")
PLACED = changed(
    ATTENTION,
    ("x, mask=None", "x, places, mask=None"),
    ("B, S, D = x.shape", "B, S, D = x.shape\n        x = x + places[..., None].cos()"),
)
GIVEN = Input(name="places", axes=("B", "S"), dtype="int", role="positions")
GIVES = replace(SELF, inputs=(X, GIVEN), promises=("ordered",), dtypes=("float64",))
FIRST_LINE = "B, S, D = x.shape"
BIASED = changed(
    ATTENTION,
    ("x, mask=None", "x, bias=None"),
    ("if mask is not None:", "if bias is not None:"),
    ("scores.masked_fill(mask[:, None], -torch.inf)", "scores + bias[:, None]"),
)
BIASES = replace(
    SELF, inputs=(X, Input(name="bias", axes=("B", "S", "S"), optional=True)), promises=()
)
PADDED = changed(ATTENTION, ("mask[:, None]", "mask[:, None, None]"))
PADDED = changed(PADDED, (SOFT, f"{SOFT}.nan_to_num(0.0)"))
HIDES = Input(name="mask", axes=("B", "S"), dtype="bool", role="mask", optional=True)
POOLED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, embed_dim):
        super().__init__()
        self.query = nn.Linear(embed_dim, 1)

    def forward(self, x, mask=None):
        scores = self.query(x).squeeze(-1)
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        return (scores.softmax(-1).unsqueeze(1) @ x).squeeze(1)
"""
TOKENS = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, d_model))

    def forward(self, ids):
        return self.weight[ids]
"""
BARE = replace(LOOKUP, init={"vocab_size": "V", "d_model": "D"}, tied=(), state_dict=(),
               padding_idx=None, promises=())  # fmt: skip
ROOMY = changed(PACKED, ("nn.Embedding(64", "nn.Embedding(512"))
DECODES = replace(DECODER, vary=("B", "S", "D", "H"))
KEEPS_ALL = "S, K = q.shape[2], k.shape[2]"


def code(source: str) -> Code:
    return Code(file="solution.py", text=source, name="M")


LIMITS = replace(
    SELF, sizes={**SELF.sizes, "M": 64}, init={**SELF.init, "longest": "M"},
    inputs=(X,), promises=("causal",), dtypes=("bfloat16",),
)  # fmt: skip
WINDOWED = replace(
    SELF, sizes={**SELF.sizes, "W": 3}, init={**SELF.init, "window": "W"}, inputs=(X,),
    promises=("causal", "local"), vary=("B", "S", "D", "H", "W"),
)  # fmt: skip
QUARTERS = changed(
    ATTENTION,
    ("super().__init__()", "super().__init__()\n        assert embed_dim // num_heads % 4 == 0"),
)
RIGHT = {
    "heads whose width is a multiple of four": Case(
        QUARTERS, replace(SELF, multiples={"hd": 4}, promises=("signature",))
    ),
    "a width that is a multiple of twelve": Case(
        TABLE.replace("super().__init__()", "super().__init__(); assert d_model % 12 == 0"),
        replace(ENCODING, sizes={**ENCODING.sizes, "D": 12}, multiples={"D": 12}),
        None,
    ),
    "a cache, and arguments in their order": Case(
        CACHED, replace(DECODER, promises=("causal", "averaging", "signature")), code(CACHED)
    ),
    "no more positions than 64, and bfloat16": Case(LIMITED, LIMITS, code(LIMITED)),
    "documents that know an order": Case(ROOMY, replace(ROWS, promises=("ordered",)), code(ROOMY)),
    "a mask that is True where a key may be seen": Case(
        changed(ATTENTION, (FILL, FILL.replace("mask[:", "~mask[:"))),
        replace(SELF, inputs=(X, ALLOWS)),
    ),
    "a bias by keys alone, under a causal mask": Case(KEY_ROW, SLOPED_CAUSAL, "ALiBi"),
    "a bias and the library's": Case(ALIBI, SLOPED, "ALiBi"),
    "empty rows, by a mask of keys alone": Case(
        PADDED, replace(SELF, inputs=(X, HIDES), promises=("empty-rows",)), code(PADDED)
    ),
    "one output for a sequence": Case(
        POOLED,
        replace(
            SELF,
            inputs=(X, HIDES),
            output=("B", "D"),
            promises=(),
            sizes={"B": 2, "S": 4, "D": 8},
            init={"embed_dim": "D"},
        ),
        code(POOLED),
    ),
    "a bias that may be left out": Case(BIASED, BIASES, code(BIASED)),
    "positions that are given": Case(PLACED, GIVES, code(PLACED)),
    "places that are given beside the vectors": Case(
        PLACED, replace(SELF, inputs=(X, PLACES), promises=("ordered",)), code(PLACED)
    ),
    "queries and keys of other lengths": Case(CROSS, ACROSS, code(CROSS)),
    "a window": Case(WINDOW, WINDOWED, code(WINDOW)),
    "tokens": Case(TOKENS, BARE, code(TOKENS)),
    "a cache and the same module in one pass": Case(CACHED, DECODES, code(CACHED)),
}
SQUARE = """if q.shape[2] == k.shape[2]:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), -1e4)
        weights = scores.softmax(-1)"""
SLOPES = 'self.register_buffer("slopes", torch.tensor(slopes(num_heads)), persistent=False)'
WRONG = {
    "slopes on the class": (
        Case(changed(ALIBI, (SLOPES, "M.slopes = torch.tensor(slopes(num_heads))")), SLOPED, None),
        {"no-hidden-state"},
    ),
    "a table on the class, as long as the last one's": (
        Case(
            changed(TABLE, ('self.register_buffer("pe", pe)', "M.pe = pe")),
            replace(ENCODING, buffers=(), vary=("B", "S")),
            None,
        ),
        {"no-hidden-state"},
    ),
    "causal where there are as many queries as keys": (
        Case(changed(CROSS, (SOFT, SQUARE)), ACROSS, code(CROSS)),
        {"matches-reference"},
    ),
    "a window of three, whatever is asked for": (
        Case(changed(WINDOW, ("num_heads, window\n", "num_heads, 3\n")), WINDOWED, code(WINDOW)),
        {"matches-reference"},
    ),
    "a bias that is kept by the number of keys": (
        Case(
            changed(
                ALIBI,
                ("distance = (i - j).abs()", ("distance = (i - j).abs()\n"
                 "        self.old = getattr(self, 'old', {})\n"
                 "        old = self.old.setdefault(K, distance)\n"
                 "        distance = old[:Q] if len(old) >= Q else distance")),
            ),
            SLOPED,
            None,
        ),
        {"no-hidden-state"},
    ),
    "positions that begin again at 4096": (
        Case(
            changed(ROPE, ("torch.arange(S, dtype=torch.float64)",
                           "torch.arange(S, dtype=torch.float64) % 4096")),
            TURNED,
            None,
        ),
        {"long-positions"},
    ),
    "one position beyond the table, another one": (
        Case(
            changed(
                SUM,
                ("if S > len(self.pe):", ("if S == len(self.pe) + 1:\n"
                 "            self.pe = torch.cat((self.pe, self.pe[-1:] / 2))\n"
                 "        if S > len(self.pe):")),
                ('raise ValueError(f"{S} is too long")', "self.pe = M(2 * S, self.pe.shape[1]).pe"),
            ),
            replace(ENCODING, output=("B", "S", "D"), buffers=(),
                    position=Position(form="added", beyond="extend")),
            None,
        ),
        {"extrapolation-contract"},
    ),
    "the last nine keys alone, in steps of one": (
        Case(
            changed(CACHED, (KEEPS_ALL, (f"if q.shape[2] == 1:\n            "
                             f"k, v = k[:, :, -9:], v[:, :, -9:]\n        {KEEPS_ALL}"))),
            DECODES,
            code(CACHED),
        ),
        {"matches-reference", "cache-equals-full"},
    ),
    "a lookup without a gradient": (
        Case(changed(TOKENS, ("self.weight[ids]", "self.weight.detach()[ids]")), BARE,
             code(TOKENS)),
        {"gradients-match"},
    ),
    "what is taken for causal by its first row": (
        Case(changed(ATTENTION, (FIRST_LINE, f"""{FIRST_LINE}
        if mask is not None and S > 2 and mask[0, 0, 1:].all():
            mask = torch.ones(S, S).triu(1).bool().expand_as(mask)"""))),
        {"matches-reference", "masked-keys-ignored"},
    ),
    "what is taken for causal by what it hides": (
        Case(changed(ATTENTION, (FIRST_LINE, f"""{FIRST_LINE}
        if mask is not None and S > 2 and mask[:, torch.ones(S, S).triu(1).bool()].all():
            mask = torch.ones(S, S).triu(1).bool().expand_as(mask)"""))),
        {"matches-reference"},
    ),
    "a mask that is kept while its sum is the same": (
        Case(changed(ATTENTION, (FIRST_LINE, f"""{FIRST_LINE}
        if mask is not None and mask.shape == getattr(self, "held", mask[0]).shape:
            mask = self.held if self.held.sum() == mask.sum() else mask
        self.held = mask if mask is not None else torch.zeros(())"""))),
        {"matches-reference"},
    ),
    "heads of one width are scaled otherwise": (
        Case(changed(ATTENTION, ("q.shape[-1] ** 0.5",
                                 "(0.5 if q.shape[-1] == 48 else q.shape[-1] ** 0.5)"))),
        {"matches-reference"},
    ),
    "lengths that are a multiple of a block": (
        Case(changed(ATTENTION, (FIRST_LINE,
                                 f"{FIRST_LINE}\n        x = x * 2 if S % 48 == 0 else x"))),
        {"matches-reference"},
    ),
    "batches that are cut": (
        Case(changed(ATTENTION, (FIRST_LINE, f"{FIRST_LINE}\n        x = x * (B < 200)"))),
        {"matches-reference"},
    ),
    "a bias that cannot be left out": (
        Case(changed(BIASED, ("if bias is not None:", "if True:")), BIASES, code(BIASED)),
        {"matches-reference"},
    ),
    "positions that it counts itself": (
        Case(changed(PLACED, ("places[..., None]", "torch.arange(S)[:, None].to(x.dtype)")), GIVES,
             code(PLACED)),
        {"matches-reference"},
    ),
    "a row that does not learn": (
        Case(changed(TOKENS, ("self.weight[ids]",
                              "torch.cat((self.weight[:1].detach(), self.weight[1:]))[ids]")),
             BARE, code(TOKENS)),
        {"gradients-match"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_passes(name, seed):
    """Each was a failure, an error or beyond comparing before anybody tried its kind."""
    results = tried(RIGHT[name], seed)
    assert not [(c.id, c.message) for c in results if c.outcome in ("failed", "error")]
    assert sum(c.outcome == "passed" for c in results) > 4


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_does_not(name, seed):
    """Each passed before; the property that is broken says so."""
    case, blamed = WRONG[name]
    results = tried(case, seed)
    assert results[0].outcome == "failed"
    assert results[0].id in blamed, [(c.id, c.message) for c in results if c.outcome == "failed"]


def test_instances_that_keep_a_cache_have_nothing_in_common_either():
    """What one keeps between two steps survives that another one reads a prompt."""
    source = changed(CACHED, *KEPT)
    results = tried(Case(source, INNER, code(source)))
    assert not [(c.id, c.message) for c in results if c.outcome in ("failed", "error")]
    shared = source.replace("self.cache = k, v", "M.cache = k, v").replace("self.cache", "M.cache")
    results = tried(Case(shared, INNER, code(source)))
    assert (results[0].id, results[0].outcome) == ("no-hidden-state", "failed")

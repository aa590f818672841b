"""What has been reported as a bug somewhere, and is right: it must pass.

Each was argued about in public. The checks settle it by values and properties.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from sources import CACHED, DECODER, GROUPED, PACKED, ROWS, SHARED
from trial import ATTENTION, DROPOUT, SELF, Case, changed, tried

from attnlab.records import Code, Input

SCORES = "scores = q @ k.mT / q.shape[-1] ** 0.5"
KEPT = "weights = scores.softmax(-1)"
VIEW = "q, k, v = self.qkv_proj(x).view(B, S, 3, self.H, -1).permute(2, 0, 3, 1, 4)"
FUTURE = "future = torch.ones(S, K, dtype=torch.bool).triu(K - S + 1)"
FILLED = "weights = scores.masked_fill(future, -torch.inf).softmax(-1)"
NO_SINKS = "self.out_proj = nn.Linear(embed_dim, embed_dim)"
WITH_SINKS = f"{NO_SINKS}\n        self.sinks = nn.Parameter(torch.zeros(num_heads))"
CAUSAL = replace(DECODER, cache=None)
PLAIN = changed(CACHED, ("return out, (k, v)", "return out"))
SINKS = replace(SHARED, promises=())
PADDED = replace(
    CAUSAL,
    inputs=(
        *CAUSAL.inputs,
        Input(name="keep", axes=("B", "S"), dtype="bool", role="mask", forbids=False),
    ),
    promises=("causal",),
)
PLACED = replace(
    CAUSAL,
    sizes={"B": 2, "S": 6, "H": 2, "hd": 4},
    init={"embed_dim": "H*hd", "num_heads": "H"},
    inputs=(Input(name="x", axes=("B", "S", "H*hd")),),
    output=("B", "S", "H*hd"),
    vary=("B", "S", "H", "hd"),
    promises=("causal",),
)
BIASED = replace(CAUSAL, promises=("causal",))
HEAD = "def forward(self, x, cache=None):"
SCORED = "scores = q @ k.mT / q.shape[-1] ** 0.5"
SLOPES = "slope = 2.0 ** -torch.arange(1, self.H + 1.0)[:, None, None]"
ALIBI = changed(
    PLAIN,
    (
        SCORED,
        (
            f"{SLOPES}\n        far = torch.arange(K) - torch.arange(S)[:, None]\n"
            f"        {SCORED} + slope * far"
        ),
    ),
)
TURN = """
def turn(t, first=0):
    n = t.shape[-1] // 2
    angle = (torch.arange(t.shape[2]) + first)[:, None] * 100.0 ** (-torch.arange(n) / n)
    a, b = t[..., :n], t[..., n:]
    return torch.cat((a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()), -1)

class M("""
ROPE = changed(PLAIN, ("\nclass M(", TURN), (SCORED, f"q, k = turn(q), turn(k)\n        {SCORED}"))


def own(source):
    """A reference of the same names, in a file of its own."""
    return Code(file="right.py", text=source, name="M")


def attention(*pairs, contract=SELF):
    return Case(changed(ATTENTION, *pairs), contract)


def decoder(*pairs):
    return Case(changed(PLAIN, *pairs), CAUSAL, own(PLAIN))


DECOYS = {
    "a sigmoid of the sum against a sink": Case(
        changed(
            GROUPED,
            (NO_SINKS, WITH_SINKS),
            (
                "heads = weights @ v",
                ("lse = scores.logsumexp(-1, keepdim=True)\n"
                "        heads = weights @ v * torch.sigmoid(lse - self.sinks[:, None, None])"),
            ),
        ),
        SINKS,
        "SinkAttention",
    ),
    "a sink in the denominator alone": Case(
        changed(
            GROUPED,
            (NO_SINKS, WITH_SINKS),
            (
                KEPT,
                ("sink = self.sinks[:, None, None].expand(*scores.shape[:3], 1)\n"
                "        weights = torch.cat((scores, sink), -1).softmax(-1)[..., :-1]"),
            ),
        ),
        SINKS,
        "SinkAttention",
    ),
    "segments compared the other way round": Case(
        changed(
            PACKED,
            (
                "same = segments[:, :, None] == segments[:, None, :]",
                "same = segments.unsqueeze(1) - segments.unsqueeze(2) == 0",
            ),
        ),
        ROWS,
        None,
    ),
    "linear attention with a running normaliser": Case(
        changed(
            PLAIN,
            ("import nn\n", "import nn\nfrom torch.nn import functional as F\n"),
            (
                "out = self.out_proj((weights @ v).transpose(1, 2).flatten(2))",
                ("q, k = F.elu(q) + 1, F.elu(k) + 1\n"
                "        state = (k[..., None] * v[..., None, :]).cumsum(2)\n"
                "        total = (q * k.cumsum(2)).sum(-1, keepdim=True)\n"
                "        heads = (q[..., None, :] @ state).squeeze(-2) / total\n"
                "        out = self.out_proj(heads.transpose(1, 2).flatten(2))"),
            ),
        ),
        replace(CAUSAL, promises=("causal", "averaging", "local")),
        None,
    ),
    "the scale before the product": attention((SCORES, "scores = q / q.shape[-1] ** 0.5 @ k.mT")),
    "a view, then a transpose": attention(
        (
            VIEW,
            ("q, k, v = (t.view(B, S, self.H, D // self.H).transpose(1, 2)"
            " for t in self.qkv_proj(x).chunk(3, -1))"),
        )
    ),
    "a triangle of -inf above the diagonal": decoder(
        (FUTURE, "future = torch.full((S, K), -torch.inf).triu(1)"),
        (FILLED, "weights = (scores + future).softmax(-1)"),
    ),
    "a padding mask beside its own triangle": Case(
        changed(
            PLAIN,
            (HEAD, "def forward(self, x, keep):\n        cache = None"),
            (FUTURE, f"{FUTURE} | ~keep[:, None, None]"),
        ),
        PADDED,
        None,
    ),
    "keys times queries, transposed": attention(("q @ k.mT", "(k @ q.mT).mT")),
    "dropout on the weights": Case(
        changed(ATTENTION, ("weights @ v", "F.dropout(weights, 0.3, self.training) @ v")), DROPOUT
    ),
    "queries scaled with their bias": attention(
        (SCORES, "q = q * q.shape[-1] ** -0.5\n        scores = q @ k.mT")
    ),
    "distances by the key alone": Case(
        changed(
            PLAIN,
            (SCORED, f"{SLOPES}\n        {SCORED} + slope * torch.arange(K)"),
        ),
        BIASED,
        own(ALIBI),
    ),
    "rotary positions that all begin at 7": Case(
        changed(ROPE, ("turn(q), turn(k)", "turn(q, 7), turn(k, 7)")), PLACED, own(ROPE)
    ),
    "features of queries and keys permuted alike": attention(
        (SCORES, f"q, k = q.flip(-1), k.flip(-1)\n        {SCORES}")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DECOYS)
def test_what_is_only_called_a_bug_passes(name):
    """No check fails it, and none says that it cannot tell."""
    results = tried(DECOYS[name])
    assert {c.outcome for c in results} == {"passed", "skipped"}, [
        (c.id, c.message) for c in results if c.outcome in ("failed", "error")
    ]

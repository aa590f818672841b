"""Layers beside plain self-attention, named and laid out as well-known libraries do."""

from __future__ import annotations

from attnlab.records import Contract, Input

HEAD = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n\n"
X = Input(name="x", axes=("B", "S", "D"))
MASK = Input(name="mask", axes=("B", "1", "S", "S"), dtype="bool", role="mask", optional=True)
HEADS = {"embed_dim": "D", "num_heads": "H"}
SELF = Contract(sizes={"B": 2, "S": 4, "D": 12, "H": 3}, init=HEADS, inputs=(X, MASK),
                output=("B", "S", "D"))  # fmt: skip
GROUPED = Contract(
    sizes={"B": 2, "S": 4, "D": 24, "H": 6, "Hkv": 2},
    init={**HEADS, "num_kv_heads": "Hkv"},
    inputs=(X, MASK),
    output=("B", "S", "D"),
    vary=("B", "S", "D", "H", "Hkv"),
)
CROSS = Contract(
    sizes={"B": 2, "S": 4, "Sk": 7, "D": 12, "H": 3, "E": 5},
    init={**HEADS, "context_dim": "E"},
    inputs=(X, Input(name="context", axes=("B", "Sk", "E"))),
    output=("B", "S", "D"),
    vary=("B", "S", "Sk", "D", "H"),
)
GATED = Contract(sizes={"B": 2, "S": 4, "D": 6, "F": 10}, inputs=(X,), output=("B", "S", "D"),
                 init={"embed_dim": "D", "hidden_dim": "F"})  # fmt: skip
TOKENS = Contract(
    sizes={"B": 2, "S": 4, "D": 6, "V": 11},
    init={"vocab_size": "V", "d_model": "D"},
    inputs=(Input(name="ids", axes=("B", "S"), dtype="int"),),
    output=("B", "S", "D"),
    vary=("B", "S", "D"),
)

GROUPS = """class Net(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        D, self.H, self.Hkv = embed_dim, num_heads, num_kv_heads
        hd = self.hd = D // num_heads
        {init}

    def forward(self, x, mask=None):
        B, S, D = x.shape
        {parts}
        q = q.view(B, S, self.H, self.hd).transpose(1, 2)
        k, v = (t.view(B, S, self.Hkv, self.hd).transpose(1, 2) for t in (k, v))
        k, v = (t.{repeat} for t in (k, v))
        keep = None if mask is None else ~mask
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return self.wo(out.transpose(1, 2).reshape(B, S, D))
"""
REPEAT = "repeat_interleave(self.H // self.Hkv, 1)"
FOUR = (
    "self.wq, self.wo = nn.Linear(D, D), nn.Linear(D, D)\n"
    "        self.wk, self.wv = nn.Linear(D, hd * self.Hkv), nn.Linear(D, hd * self.Hkv)"
)
ONE = "self.Wqkv, self.wo = nn.Linear(D, D + 2 * hd * self.Hkv), nn.Linear(D, D)"
APART = "q, k, v = self.wq(x), self.wk(x), self.wv(x)"
CUT = "q, k, v = self.Wqkv(x).split([D, self.hd * self.Hkv, self.hd * self.Hkv], -1)"
BLOCK = """class Conv1D(nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, columns) * 0.1)
        self.bias = nn.Parameter(torch.zeros(columns))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, D, H):
        super().__init__()
        self.c_attn, self.c_proj, self.H = Conv1D(D, 3 * D), Conv1D(D, D), H

    def forward(self, x, mask):
        parts = self.c_attn(x).chunk(3, -1)
        q, k, v = (p.unflatten(-1, (self.H, -1)).transpose(1, 2) for p in parts)
        keep = None if mask is None else ~mask
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return self.c_proj(out.transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    def __init__(self, D):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(D, 4 * D), Conv1D(4 * D, D)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Net(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(embed_dim), Attention(embed_dim, num_heads)
        self.ln_2, self.mlp = nn.LayerNorm(embed_dim), Mlp(embed_dim)

    def forward(self, x, mask=None):
        x = x + self.attn(self.ln_1(x), mask)
        return x + self.mlp(self.ln_2(x))
"""
OF_A_CONTEXT = """class Net(nn.Module):
    def __init__(self, embed_dim, num_heads, context_dim):
        super().__init__()
        self.H = num_heads
        self.to_q = nn.Linear(embed_dim, embed_dim)
        self.to_kv = nn.Linear(context_dim, 2 * embed_dim)
        self.to_out = nn.Sequential(nn.Linear(embed_dim, embed_dim), nn.Dropout(0.0))

    def forward(self, x, context):
        parts = (self.to_q(x), *self.to_kv(context).chunk(2, -1))
        q, k, v = (p.unflatten(-1, (self.H, -1)).transpose(1, 2) for p in parts)
        out = F.scaled_dot_product_attention(q, k, v)
        return self.to_out(out.transpose(1, 2).flatten(2))
"""
LLAMA = """class Net(nn.Module):
    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.w1 = nn.Linear(embed_dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, embed_dim, bias=False)
        self.w3 = nn.Linear(embed_dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))
"""
TABLE = """class Net(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, d_model)

    def forward(self, ids):
        return self.wte(ids)
"""
# A unit of references/, how it is fed, and a right module with its own names.
OTHERS = {
    "groups of heads": (
        "GroupedQueryAttention", GROUPED, GROUPS.format(init=FOUR, parts=APART, repeat=REPEAT)
    ),
    "groups of heads, fused": (
        "GroupedQueryAttention", GROUPED, GROUPS.format(init=ONE, parts=CUT, repeat=REPEAT)
    ),
    "a block": ("TransformerBlock", SELF, BLOCK),
    "a context": ("CrossAttention", CROSS, OF_A_CONTEXT),
    "a gated layer": ("SwiGLU", GATED, LLAMA),
    "a table of tokens": ("TokenEmbedding", TOKENS, TABLE),
}  # fmt: skip
# The same, wrong in a way that another order of heads or of layers could hide.
WRONG_OTHERS = {
    "groups of heads": (REPEAT, "repeat(1, self.H // self.Hkv, 1, 1)"),
    "groups of heads, fused": (REPEAT, "repeat(1, self.H // self.Hkv, 1, 1)"),
    "a block": ("x + self.mlp(self.ln_2(x))", "x + self.mlp(self.ln_1(x))"),
    "a context": ("(self.to_q(x), *self.to_kv", "(self.to_q(x) / 2, *self.to_kv"),
    "a gated layer": ("F.silu(self.w1(x))", "F.gelu(self.w1(x))"),
    "a table of tokens": ("self.wte(ids)", "self.wte(ids.flip(1))"),
}

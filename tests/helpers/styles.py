"""One attention layer with its weights named and laid out in many ways, and what breaks it."""

from __future__ import annotations

import textwrap

HEAD = "import torch\nfrom torch import nn\n\n"
CORE = """
scores = q @ k.mT / hd**0.5
if mask is not None:
    scores = scores.masked_fill(mask[:, None], -torch.inf)
heads = scores.softmax(-1) @ v
merged = heads.transpose(1, 2).reshape(B, S, D)
"""
# Lines of CORE or of FRAME and what makes them wrong; no layout of the weights undoes it.
WRONG = {
    "scaled by the width": ("/ hd**0.5", "/ D**0.5"),
    "not scaled": (" / hd**0.5", ""),
    "softmax over the queries": (".softmax(-1)", ".softmax(-2)"),
    "mask turned around": ("mask[:, None]", "~mask[:, None]"),
    "mask transposed": ("mask[:, None]", "mask.mT[:, None]"),
    "heads in a blender": ("heads.transpose(1, 2)", "heads"),
    "values are keys": ("@ v", "@ k"),
    "one head for all": ("q @ k.mT", "q[:, :1] @ k[:, :1].mT"),
    "no residual": (" + x", ""),
    "first sample for all": ("q @ k.mT", "q[:1] @ k.mT"),
}


def style(init: str, split: str, out: str, before: str = "") -> str:
    """A module `Net`: what it holds, how it gets q, k, v of (B, H, S, hd), and its last line."""
    body = f"B, S, D = x.shape\nH, hd = self.H, D // self.H\n{split}\n{CORE}\nreturn {out} + x"
    made = "super().__init__()\nD, H = embed_dim, num_heads\nself.H, hd = H, D // H"
    return (
        f"{HEAD}{before}class Net(nn.Module):\n    def __init__(self, embed_dim, num_heads):\n"
        f"{_body(made + chr(10) + init)}    def forward(self, x, mask=None):\n{_body(body)}"
    )


def _body(text: str) -> str:
    return textwrap.indent(text.strip(), " " * 8) + "\n\n"


def broken(text: str, how: str) -> str:
    old, new = WRONG[how]
    assert text.count(old) == 1, (how, text)
    return text.replace(old, new)


SEPARATE = "q, k, v = (f(x).view(B, S, H, hd).transpose(1, 2) for f in ({}))"
LAYERS = (
    "{0} = nn.Linear(D, D); {1} = nn.Linear(D, D); {2} = nn.Linear(D, D); {3} = nn.Linear(D, D)"
)
LAYER_NORM = "self.ln = nn.LayerNorm(D)"
EMPTY = "P = lambda *s: nn.Parameter(torch.randn(*s) * 0.1)\n"
HEAD_OF_ITS_OWN = """class Head(nn.Module):
    def __init__(self, D, hd):
        super().__init__()
        self.key = nn.Linear(D, hd)
        self.query = nn.Linear(D, hd)
        self.value = nn.Linear(D, hd)


"""
RIGHT = {
    "names of their own": style(
        LAYERS.format("self.query", "self.key", "self.value", "self.proj") + "\n" + LAYER_NORM,
        SEPARATE.format("self.query, self.key, self.value"),
        "self.ln(self.proj(merged))",
    ),
    "another order of definition": style(
        LAYERS.format("self.o_lin", "self.v_lin", "self.k_lin", "self.q_lin") + "\n" + LAYER_NORM,
        SEPARATE.format("self.q_lin, self.k_lin, self.v_lin"),
        "self.ln(self.o_lin(merged))",
    ),
    "names that say nothing": style(
        LAYERS.format("self.a", "self.b", "self.c", "self.d") + "\nself.e = nn.LayerNorm(D)",
        SEPARATE.format("self.c, self.a, self.d"),
        "self.e(self.b(merged))",
    ),
    "a list of layers": style(
        "self.linears = nn.ModuleList(nn.Linear(D, D) for _ in range(4))\n" + LAYER_NORM,
        SEPARATE.replace("({})", "self.linears[:3]"),
        "self.ln(self.linears[3](merged))",
    ),
    "matrices times which x stands": style(
        EMPTY + "self.wq, self.wk, self.wv, self.wo = P(D, D), P(D, D), P(D, D), P(D, D)\n"
        "self.bq, self.bk, self.bv, self.bo = P(D), P(D), P(D), P(D)\n"
        "self.gamma, self.beta = P(D), P(D)",
        "parts = ((self.wq, self.bq), (self.wk, self.bk), (self.wv, self.bv))\n"
        "q, k, v = ((x @ w + b).view(B, S, H, hd).transpose(1, 2) for w, b in parts)",
        "nn.functional.layer_norm(merged @ self.wo + self.bo, (D,), self.gamma, self.beta)",
    ),
    "a tensor for each head": style(
        EMPTY + "self.W_Q, self.W_K, self.W_V = P(H, D, hd), P(H, D, hd), P(H, D, hd)\n"
        "self.b_Q, self.b_K, self.b_V = P(H, hd), P(H, hd), P(H, hd)\n"
        "self.W_O, self.b_O = P(H, hd, D), P(D)\n" + LAYER_NORM,
        "parts = ((self.W_Q, self.b_Q), (self.W_K, self.b_K), (self.W_V, self.b_V))\n"
        "q, k, v = (torch.einsum('bsd,hde->bhse', x, w) + b[:, None] for w, b in parts)",
        "self.ln(merged @ self.W_O.reshape(D, D) + self.b_O)",
    ),
    "fused and transposed": style(
        EMPTY + "self.c_attn = nn.ParameterDict({'weight': P(D, 3 * D), 'bias': P(3 * D)})\n"
        "self.c_proj = nn.ParameterDict({'weight': P(D, D), 'bias': P(D)})\n"
        "self.ln_1 = nn.LayerNorm(D)",
        "parts = (x @ self.c_attn['weight'] + self.c_attn['bias']).split(D, -1)\n"
        "q, k, v = (p.view(B, S, H, hd).transpose(1, 2) for p in parts)",
        "self.ln_1(merged @ self.c_proj['weight'] + self.c_proj['bias'])",
    ),
    "fused head by head": style(
        "self.query_key_value = nn.Linear(D, 3 * D)\nself.dense = nn.Linear(D, D)\n"
        "self.norm = nn.LayerNorm(D)",
        "parts = self.query_key_value(x).view(B, S, H, 3, hd)\n"
        "q, k, v = parts.permute(3, 0, 2, 1, 4)",
        "self.norm(self.dense(merged))",
    ),
    "fused under another name": style(
        "self.kqv = nn.Linear(D, 3 * D)\nself.out = nn.Linear(D, D)\n" + LAYER_NORM,
        "parts = self.kqv(x).chunk(3, -1)\n"
        "k, q, v = (p.view(B, S, H, hd).transpose(1, 2) for p in parts)",
        "self.ln(self.out(merged))",
    ),
    "keys and values fused": style(
        "self.to_q = nn.Linear(D, D)\nself.to_kv = nn.Linear(D, 2 * D)\n"
        "self.to_out = nn.Sequential(nn.Linear(D, D), nn.Dropout(0.0))\n" + LAYER_NORM,
        "parts = (self.to_q(x), *self.to_kv(x).chunk(2, -1))\n"
        "q, k, v = (p.view(B, S, H, hd).transpose(1, 2) for p in parts)",
        "self.ln(self.to_out(merged))",
    ),
    "a module for each head": style(
        "self.heads = nn.ModuleList(Head(D, hd) for _ in range(H))\n"
        "self.proj = nn.Linear(D, D)\n" + LAYER_NORM,
        "q, k, v = (torch.stack([getattr(h, n)(x) for h in self.heads], 1)\n"
        "           for n in ('query', 'key', 'value'))",
        "self.ln(self.proj(merged))",
        HEAD_OF_ITS_OWN,
    ),
    "stacked with axes for heads": style(
        EMPTY + "self.qkv, self.qkv_bias = P(3, H, hd, D), P(3, 1, H, hd)\n"
        "self.out, self.out_bias = P(D, H, hd), P(1, 1, D)\n" + LAYER_NORM,
        "w, b = self.qkv, self.qkv_bias.transpose(1, 2)\n"
        "q, k, v = torch.einsum('bsd,khed->kbhse', x, w) + b[:, None]",
        "self.ln(merged @ self.out.flatten(1).mT + self.out_bias)",
    ),
    "one name kept": style(
        "self.qkv_proj = nn.Linear(D, 3 * D)\nself.wo = nn.Linear(D, D)\n" + LAYER_NORM,
        "parts = self.qkv_proj(x).chunk(3, -1)\n"
        "q, k, v = (p.view(B, S, H, hd).transpose(1, 2) for p in parts)",
        "self.ln(self.wo(merged))",
    ),
    "greek letters": style(
        LAYERS.format("self.beta", "self.alpha", "self.gamma_", "self.delta")
        + "\nself.epsilon = nn.LayerNorm(D)",
        SEPARATE.format("self.alpha, self.beta, self.gamma_"),
        "self.epsilon(self.delta(merged))",
    ),
    "a norm at the end of the output": style(
        "self.to_qkv = nn.Linear(D, 3 * D)\n"
        "self.to_out = nn.Sequential(nn.Linear(D, D), nn.LayerNorm(D))",
        "parts = self.to_qkv(x).chunk(3, -1)\n"
        "q, k, v = (p.view(B, S, H, hd).transpose(1, 2) for p in parts)",
        "self.to_out(merged)",
    ),
    "one matrix for everything": style(
        EMPTY + "self.w, self.b = P(4 * D, D), P(4 * D)\n" + LAYER_NORM,
        "*parts, out = (x @ self.w.mT + self.b).split(D, -1)\n"
        "q, k, v = (p.view(B, S, H, hd).transpose(1, 2) for p in parts)",
        "self.ln(merged @ self.w[3 * D :].mT + self.b[3 * D :])",
    ),
    "the kernel's own module": HEAD
    + """class Net(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(embed_dim, num_heads, batch_first=True)
        self.ln, self.H = nn.LayerNorm(embed_dim), num_heads

    def forward(self, x, mask=None):
        mask = mask if mask is None else mask.repeat_interleave(self.H, 0)
        return self.ln(self.attn(x, x, x, attn_mask=mask, need_weights=False)[0]) + x
""",
}
# Mistakes that a map of the weights could hide, if it were allowed to take any.
MIXED = {
    "keys called queries": RIGHT["names of their own"].replace(
        "self.query, self.key, self.value)", "self.key, self.query, self.value)"
    ),
    "values called keys": RIGHT["matrices times which x stands"].replace(
        "(self.wk, self.bk), (self.wv, self.bv)", "(self.wv, self.bv), (self.wk, self.bk)"
    ),
    "fused in another order": RIGHT["one name kept"].replace("q, k, v = (p", "v, k, q = (p"),
    "fused head by head, under the known name": RIGHT["fused head by head"].replace(
        "query_key_value", "qkv_proj"
    ),
    "unpacked in another order": RIGHT["fused under another name"].replace(
        "k, q, v = (p", "q, k, v = (p"
    ),
    "features before heads": RIGHT["names of their own"].replace(
        "view(B, S, H, hd).transpose(1, 2)", "view(B, S, hd, H).permute(0, 3, 1, 2)"
    ),
    "no bias at the end": RIGHT["names of their own"].replace(
        "self.proj = nn.Linear(D, D)", "self.proj = nn.Linear(D, D, bias=False)"
    ),
    "one layer more": RIGHT["names of their own"].replace(
        "self.ln = ", "self.more = nn.Linear(D, D); self.ln = "
    ),
    "values that share the keys' layer": RIGHT["names of their own"].replace(
        "self.value = nn.Linear(D, D)", "self.value = self.key"
    ),
}

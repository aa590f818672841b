"""Right modules of more kinds, to break: cross-attention, shared key heads, caches, packed rows."""

from __future__ import annotations

from dataclasses import replace

from trial import SELF

from attnlab.records import Cache, Contract, Input

CROSS = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.H = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, context, mask=None):
        q = self.q_proj(x).unflatten(-1, (self.H, -1)).transpose(1, 2)
        k = self.k_proj(context).unflatten(-1, (self.H, -1)).transpose(1, 2)
        v = self.v_proj(context).unflatten(-1, (self.H, -1)).transpose(1, 2)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        weights = scores.softmax(-1)
        heads = weights @ v
        return self.out_proj(heads.transpose(1, 2).flatten(2))
"""
GROUPED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads):
        super().__init__()
        self.H, self.K, self.hd = num_heads, num_kv_heads, embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, num_kv_heads * self.hd)
        self.v_proj = nn.Linear(embed_dim, num_kv_heads * self.hd)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, mask=None):
        q = self.q_proj(x).unflatten(-1, (self.H, self.hd)).transpose(1, 2)
        k = self.k_proj(x).unflatten(-1, (self.K, self.hd)).transpose(1, 2)
        v = self.v_proj(x).unflatten(-1, (self.K, self.hd)).transpose(1, 2)
        k = k.repeat_interleave(self.H // self.K, 1)
        v = v.repeat_interleave(self.H // self.K, 1)
        scores = q @ k.mT / self.hd ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)
        weights = scores.softmax(-1)
        heads = weights @ v
        return self.out_proj(heads.transpose(1, 2).flatten(2))
"""
CACHED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.H = num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, cache=None):
        q = self.q_proj(x).unflatten(-1, (self.H, -1)).transpose(1, 2)
        k = self.k_proj(x).unflatten(-1, (self.H, -1)).transpose(1, 2)
        v = self.v_proj(x).unflatten(-1, (self.H, -1)).transpose(1, 2)
        if cache is not None:
            k = torch.cat((cache[0], k), dim=2)
            v = torch.cat((cache[1], v), dim=2)
        S, K = q.shape[2], k.shape[2]
        future = torch.ones(S, K, dtype=torch.bool).triu(K - S + 1)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        out = self.out_proj((weights @ v).transpose(1, 2).flatten(2))
        return out, (k, v)
"""
PACKED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.H = num_heads
        self.positions = nn.Embedding(64, embed_dim)
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, segments):
        same = segments[:, :, None] == segments[:, None, :]
        place = same.tril().sum(-1) - 1
        x = x + self.positions(place)
        q, k, v = self.qkv_proj(x).unflatten(-1, (3, self.H, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(~same[:, None], -torch.inf).softmax(-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))
"""

X = Input(name="x", axes=("B", "S", "D"))
ACROSS = Contract(
    sizes={"B": 2, "Sq": 3, "Sk": 5, "D": 8, "H": 2},
    init={"embed_dim": "D", "num_heads": "H"},
    inputs=(
        Input(name="x", axes=("B", "Sq", "D")),
        Input(name="context", axes=("B", "Sk", "D")),
        Input(name="mask", axes=("B", "1", "Sq", "Sk"), dtype="bool", role="mask", optional=True),
    ),
    output=("B", "Sq", "D"),
    promises=("averaging",),
    vary=("B", "Sq", "Sk", "D", "H"),
)
SHARED = Contract(
    sizes={"B": 2, "S": 5, "D": 24, "H": 6, "Hkv": 2},
    init={"embed_dim": "D", "num_heads": "H", "num_kv_heads": "Hkv"},
    inputs=(
        X,
        Input(name="mask", axes=("B", "1", "S", "S"), dtype="bool", role="mask", optional=True),
    ),
    output=("B", "S", "D"),
    promises=("averaging",),
    vary=("B", "S", "D", "H", "Hkv"),
)
DECODER = Contract(
    sizes={"B": 2, "S": 6, "D": 8, "H": 2},
    init={"embed_dim": "D", "num_heads": "H"},
    inputs=(X,),
    output=("B", "S", "D"),
    promises=("causal", "averaging"),
    cache=Cache(),
)
INNER = replace(DECODER, cache=Cache(form="inner", reset="reset", reorder="reorder"))
ROWS = Contract(
    sizes={"B": 2, "S": 6, "D": 8, "H": 2},
    init={"embed_dim": "D", "num_heads": "H"},
    inputs=(X, Input(name="segments", axes=("B", "S"), dtype="int", role="segments")),
    output=("B", "S", "D"),
)
MASK = SELF.inputs[1]
ADDITIVE = replace(SELF, inputs=(SELF.inputs[0], replace(MASK, additive=True)))
SCALED = replace(SELF, sizes={"B": 2, "S": 6, "D": 32, "H": 4}, promises=("averaging", "scaled"))
SAFE = replace(SELF, promises=("averaging", "nan-safe"))

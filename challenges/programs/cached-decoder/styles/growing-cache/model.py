"""The same decoder with a cache that grows, a matrix for each of q, k, v, and a plain softmax."""

import torch
from torch import nn
from torch.nn import functional as F


class SelfAttention(nn.Module):
    def __init__(self, d_model, n_heads, p_drop):
        super().__init__()
        self.n_heads = n_heads
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(p_drop)

    def new_cache(self, batch, room):
        return {}

    def forward(self, x, cache=None):
        q, k, v = (
            layer(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        if cache is not None:
            if cache:
                k = torch.cat([cache["k"], k], dim=2)
                v = torch.cat([cache["v"], v], dim=2)
            cache.update(k=k, v=v)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        new, seen = scores.shape[-2:]
        later = torch.ones(new, seen, dtype=torch.bool, device=x.device).triu(seen - new + 1)
        weights = self.dropout(scores.masked_fill(later, -torch.inf).softmax(dim=-1))
        return self.output((weights @ v).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, d_model, p_drop):
        super().__init__()
        self.up = nn.Linear(d_model, 2 * d_model)
        self.down = nn.Linear(2 * d_model, d_model)
        self.dropout = nn.Dropout(p_drop)

    def forward(self, x):
        return self.dropout(self.down(F.silu(self.up(x))))


class Layer(nn.Module):
    def __init__(self, d_model, n_heads, p_drop):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.attention = SelfAttention(d_model, n_heads, p_drop)
        self.norm2 = nn.LayerNorm(d_model)
        self.mlp = MLP(d_model, p_drop)

    def forward(self, x, cache=None):
        x = x + self.attention(self.norm1(x), cache)
        return x + self.mlp(self.norm2(x))


class CachedDecoder(nn.Module):
    def __init__(self, n_vocab, n_ctx, d_model=64, n_heads=4, n_layers=2, p_drop=0.05):
        super().__init__()
        self.tokens = nn.Embedding(n_vocab, d_model)
        self.positions = nn.Embedding(n_ctx, d_model)
        self.layers = nn.ModuleList([Layer(d_model, n_heads, p_drop) for _ in range(n_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, n_vocab, bias=False)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.normal_(self.head.weight, std=0.02)

    def new_caches(self, batch, room):
        return [{} for _ in self.layers]

    def forward(self, ids, caches=None):
        before = caches[0]["k"].shape[2] if caches and caches[0] else 0
        x = self.tokens(ids) + self.positions.weight[before : before + ids.shape[1]]
        for layer, cache in zip(self.layers, caches or [None] * len(self.layers)):
            x = layer(x, cache)
        return self.head(self.norm(x))

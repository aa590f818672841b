"""Keeps the groups as an axis and repeats nothing."""

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.n, self.g, self.d = kv_heads, heads // kv_heads, dim // heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, kv_heads * self.d, bias=False)
        self.wv = nn.Linear(dim, kv_heads * self.d, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def turn(self, t):
        s, half = t.shape[1], self.d // 2
        i = torch.arange(half, device=t.device)
        phase = torch.arange(s, device=t.device)[:, None] / 10000 ** (i / half)
        shape = (1, s, *[1] * (t.dim() - 3), half)
        cos, sin = phase.cos().view(shape).to(t.dtype), phase.sin().view(shape).to(t.dtype)
        low, high = t[..., :half], t[..., half:]
        return torch.cat([low * cos - high * sin, low * sin + high * cos], -1)

    def forward(self, x):
        b, s, _ = x.shape
        q = self.turn(self.wq(x).view(b, s, self.n, self.g, self.d))
        k = self.turn(self.wk(x).view(b, s, self.n, self.d))
        v = self.wv(x).view(b, s, self.n, self.d)
        scores = torch.einsum("bqngd,bknd->bngqk", q, k) / self.d**0.5
        later = torch.ones(s, s, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return self.wo(torch.einsum("bngqk,bknd->bqngd", weights, v).flatten(2))

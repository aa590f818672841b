"""Fills with -inf and replaces the NaN of empty rows."""

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, keep=None):
        b, s, d = x.shape
        hd = d // self.h
        q, k, v = self.qkv(x).reshape(b, s, 3, self.h, hd).permute(2, 0, 3, 1, 4).unbind(0)
        future = torch.triu(torch.ones(s, s, dtype=torch.bool, device=x.device), diagonal=1)
        forbidden = future.expand(b, 1, s, s)
        if keep is not None:
            forbidden = forbidden | ~keep.view(b, 1, 1, s)
        att = torch.einsum("bhqc,bhkc->bhqk", q, k) * hd**-0.5
        empty = forbidden.all(dim=-1, keepdim=True)
        att = att.masked_fill(forbidden & ~empty, float("-inf")).softmax(dim=-1)
        att = att.masked_fill(empty, 0.0)
        y = torch.einsum("bhqk,bhkc->bqhc", att, v)
        return self.proj(y.flatten(2))

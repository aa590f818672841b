"""Keeps one tensor of keys and values, heads in front."""

import torch
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, cache=None):
        b, s, d = x.shape
        q = self.to_q(x).view(b, s, self.h, -1).transpose(1, 2)
        kv = self.to_kv(x).view(b, s, 2, self.h, -1).permute(0, 2, 3, 1, 4)
        if cache is not None:
            kv = torch.cat([cache, kv], dim=3)
        k, v = kv[:, 0], kv[:, 1]
        total = k.size(2)
        mask = torch.ones(s, total, dtype=torch.bool, device=x.device).tril(total - s)
        att = (q @ k.mT * (d // self.h) ** -0.5).masked_fill(~mask, float("-inf"))
        y = att.softmax(-1) @ v
        return self.to_out(y.transpose(1, 2).reshape(b, s, d)), kv

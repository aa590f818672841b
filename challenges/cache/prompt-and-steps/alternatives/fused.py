"""Keeps keys and values side by side as they were projected, and calls the fused kernel."""

import torch
import torch.nn.functional as F
from torch import nn


class CachedAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x, cache=None):
        new = self.to_kv(x)
        kept = new if cache is None else torch.cat((cache, new), 1)
        parts = (self.to_q(x), *kept.chunk(2, -1))
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in parts)
        total = kept.size(1)
        seen = torch.ones(total, total, dtype=torch.bool, device=x.device).tril()[-x.size(1) :]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.to_out(y.transpose(1, 2).flatten(2)), kept

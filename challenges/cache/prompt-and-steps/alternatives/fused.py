"""Keeps what came in, as slow and simple as can be, and calls the fused kernel."""

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
        text = x if cache is None else torch.cat((cache, x), 1)
        k, v = self.to_kv(text).chunk(2, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.to_q(x), k, v))
        new, total = x.size(1), text.size(1)
        seen = torch.ones(total, total, dtype=torch.bool, device=x.device).tril()[total - new :]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.to_out(y.transpose(1, 2).flatten(2)), text

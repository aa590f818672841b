"""Keeps keys as they are, and turns queries and keys by places counted from 1,
the oldest key that is kept: only distances matter."""

import torch
import torch.nn.functional as F
from torch import nn


class RollingAttention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads, self.window = heads, window
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def rotation(self, length, hd, like):
        rates = torch.logspace(0, -(hd - 2) / hd, hd // 2, base=10000.0, dtype=torch.float64)
        angles = torch.outer(torch.arange(1, length + 1).double(), rates)
        return angles.cos().to(like), angles.sin().to(like)

    def forward(self, x, cache=None):
        b, s, d = x.shape
        q, k, v = (t.view(b, s, self.heads, -1) for t in self.to_qkv(x).chunk(3, -1))
        if cache is not None:
            k, v = torch.cat((cache[0], k), 1), torch.cat((cache[1], v), 1)
        n, hd = k.shape[1], k.shape[-1]
        cos, sin = self.rotation(n, hd, x)

        def turn(t, c, s_):
            a, e = t[..., 0::2], t[..., 1::2]
            c, s_ = c[:, None], s_[:, None]
            return torch.stack((a * c - e * s_, a * s_ + e * c), -1).flatten(-2)

        queries = turn(q, cos[n - s :], sin[n - s :]).transpose(1, 2)
        keys = turn(k, cos, sin).transpose(1, 2)
        mask = torch.ones(s, n, dtype=torch.bool, device=x.device)
        mask = mask.tril(n - s).triu(n - s - self.window + 1)
        out = F.scaled_dot_product_attention(queries, keys, v.transpose(1, 2), attn_mask=mask)
        first = max(n - self.window, 0)
        return self.to_out(out.transpose(1, 2).reshape(b, s, d)), (k[:, first:], v[:, first:])

"""Turns pairs as complex numbers, and lets the kernel share the keys."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class GroupedQueryAttention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.hd = dim // heads
        self.wq = nn.Linear(dim, heads * self.hd, bias=False)
        self.wk = nn.Linear(dim, kv_heads * self.hd, bias=False)
        self.wv = nn.Linear(dim, kv_heads * self.hd, bias=False)
        self.wo = nn.Linear(heads * self.hd, dim, bias=False)

    def forward(self, x):
        q, k, v = (
            w(x).unflatten(-1, (-1, self.hd)).transpose(1, 2) for w in (self.wq, self.wk, self.wv)
        )
        rates = 10000.0 ** (-torch.arange(0, self.hd, 2, device=x.device) / self.hd)
        angles = torch.arange(x.shape[1], device=x.device)[:, None] * rates
        unit = torch.polar(torch.ones_like(angles), angles)

        def turned(t):
            wide = t.float()
            z = torch.complex(*wide.chunk(2, dim=-1)) * unit
            return torch.cat((z.real, z.imag), dim=-1).to(t.dtype)

        y = scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))

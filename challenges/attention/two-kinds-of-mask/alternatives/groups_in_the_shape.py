"""Writes groups and members into the shape, and copies nothing."""

import torch
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.groups, self.hd = kv_heads, dim // heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, kv_heads * self.hd, bias=False)
        self.v_proj = nn.Linear(dim, kv_heads * self.hd, bias=False)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        q = self.q_proj(x).view(b, n, self.groups, -1, self.hd)
        k = self.k_proj(x).view(b, n, self.groups, self.hd)
        v = self.v_proj(x).view(b, n, self.groups, self.hd)
        logits = torch.einsum("bignd,bjgd->bgnij", q, k) / self.hd**0.5
        if mask is not None and mask.dtype == torch.bool:
            logits = torch.where(mask[:, :, None], logits, -torch.inf)
        elif mask is not None:
            logits = logits + mask[:, :, None]
        out = torch.einsum("bgnij,bjgd->bignd", logits.softmax(-1), v)
        return self.out_proj(out.reshape(b, n, -1))

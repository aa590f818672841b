"""One query head after the other; PyTorch's own attention takes both kinds of masks."""

import torch
import torch.nn.functional as F
from torch import nn


class GroupedQueryAttention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        kv_dim = dim // heads * kv_heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, kv_dim, bias=False)
        self.v_proj = nn.Linear(dim, kv_dim, bias=False)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        queries = self.q_proj(x).chunk(self.heads, dim=-1)
        keys = self.k_proj(x).chunk(self.kv_heads, dim=-1)
        values = self.v_proj(x).chunk(self.kv_heads, dim=-1)
        mask = None if mask is None else mask[:, 0]
        each = len(queries) // len(keys)
        mixed = [
            F.scaled_dot_product_attention(q, keys[h // each], values[h // each], attn_mask=mask)
            for h, q in enumerate(queries)
        ]
        return self.out_proj(torch.cat(mixed, dim=-1))

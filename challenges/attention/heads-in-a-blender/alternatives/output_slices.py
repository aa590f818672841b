"""Self-attention over audio frames: the heads are never merged.

`out_proj` of heads side by side is the sum, over heads, of each head through its own columns of the weight.
"""

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        H = self.num_heads
        q, k, v = self.qkv_proj(x).unflatten(-1, (3, H, -1)).unbind(dim=2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / q.size(-1) ** 0.5
        if mask is not None:
            scores = scores.where(~mask.unsqueeze(1), torch.finfo(scores.dtype).min)
        per_head = torch.einsum("bhqk,bkhd->bhqd", scores.softmax(dim=-1), v)
        columns = self.out_proj.weight.unflatten(1, (H, -1))  # (D, H, hd)
        out = torch.einsum("bhqd,ohd->bqo", per_head, columns) + self.out_proj.bias
        return self.norm(out) + x

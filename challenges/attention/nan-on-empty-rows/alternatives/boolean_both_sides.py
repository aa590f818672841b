"""Self-attention over padded documents: the boolean mask is used before and after softmax.

The backward pass of masked_fill writes zeros where it filled, so what softmax makes of a row
without keys goes no further, in either direction.
"""

import math

import torch
from torch import Tensor, nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (
            t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for t in self.qkv_proj(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        if mask is None:
            weights = scores.softmax(dim=-1)
        else:
            forbidden = mask.unsqueeze(1)
            weights = scores.masked_fill(forbidden, -torch.inf).softmax(dim=-1)
            weights = weights.masked_fill(forbidden, 0.0)
        context = (weights @ v).transpose(1, 2).flatten(2)
        return self.norm(self.out_proj(context)) + x

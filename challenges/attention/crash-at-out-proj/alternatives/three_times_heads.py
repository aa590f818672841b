"""Multi-head self-attention that treats q, k and v as 3 * H small heads until the last moment."""

import math

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.H = num_heads
        self.hd = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x, mask=None):
        small = self.qkv_proj(x).unflatten(-1, (3 * self.H, self.hd)).movedim(2, 1)
        small = small.unflatten(1, (3, self.H))
        q, k, v = small[:, 0], small[:, 1], small[:, 2]

        bias = x.new_zeros(())
        if mask is not None:
            bias = torch.where(mask, -math.inf, 0.0).to(x.dtype).unsqueeze(1)
        weights = torch.softmax(q @ k.mT / math.sqrt(self.hd) + bias, dim=-1)
        heads = (weights @ v).unbind(1)
        return self.norm(self.out_proj(torch.cat(heads, dim=-1))) + x

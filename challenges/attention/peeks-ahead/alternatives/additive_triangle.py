"""Causal self-attention with an additive mask: 0 on and below the diagonal, -inf above."""

from math import inf, sqrt

import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add_module(name, nn.Linear(embed_dim, embed_dim))

    def forward(self, x):
        b, t, d = x.shape
        h, c = self.num_heads, d // self.num_heads

        def fold(y):
            return y.view(b, t, h, c).permute(0, 2, 1, 3).reshape(b * h, t, c)

        q, k, v = fold(self.q_proj(x)), fold(self.k_proj(x)), fold(self.v_proj(x))
        wall = torch.full((t, t), -inf, dtype=x.dtype, device=x.device).triu(1)
        scores = torch.baddbmm(wall, q, k.transpose(1, 2), alpha=1 / sqrt(c))
        y = torch.bmm(scores.softmax(2), v)
        return self.out_proj(y.view(b, h, t, c).permute(0, 2, 1, 3).reshape(b, t, d))

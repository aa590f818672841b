"""Self-attention over audio frames with the heads on an axis of their own."""

import math

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        qkv = self.qkv_proj(x).unflatten(-1, (3, self.num_heads, -1))  # (B, S, 3, H, hd)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind()  # (B, H, S, hd)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores.masked_fill_(mask.unsqueeze(1), -math.inf)
        context = scores.softmax(-1) @ v
        return self.norm(self.out_proj(context.movedim(1, 2).flatten(2))) + x

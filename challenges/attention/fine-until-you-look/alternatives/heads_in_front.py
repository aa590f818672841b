"""Self-attention with the head axis in front of the words, and an additive mask."""

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
        batch, length, width = x.shape
        packed = self.qkv_proj(x).view(batch, length, 3, self.num_heads, -1)
        q, k, v = packed.permute(2, 0, 3, 1, 4)  # each (B, H, S, hd)
        logits = q @ k.mT / math.sqrt(q.size(-1))
        if mask is not None:
            hidden = torch.zeros_like(mask, dtype=logits.dtype).masked_fill(mask, -torch.inf)
            logits = logits + hidden[:, None]
        mixed = logits.softmax(-1) @ v
        return self.norm(self.out_proj(mixed.transpose(1, 2).reshape(batch, length, width))) + x

"""Attention runs under no_grad: nothing but the residual has a gradient."""

import math

import torch
from torch import nn


class MultiHeadSelfAttention(nn.Module):
    """Self-attention with one fused projection, LayerNorm on the branch and a residual."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"embed_dim {embed_dim} is not a multiple of num_heads {num_heads}")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """x: (B, S, D); mask: (B, S, S), True where a query may not look."""
        batch, seq, _ = x.shape
        x = x.detach()

        # project once, then separate queries, keys and values, head by head
        qkv = self.qkv_proj(x)
        qkv = qkv.reshape(batch, seq, 3, self.num_heads, self.head_dim)
        qkv = qkv.permute(0, 2, 3, 1, 4)
        q, k, v = qkv.unbind(dim=1)

        # scaled dot-product attention
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1), float("-inf"))
        weights = scores.softmax(dim=-1)
        context = weights @ v

        # put the heads back side by side
        context = context.transpose(1, 2).flatten(2)
        return self.norm(self.out_proj(context)) + x

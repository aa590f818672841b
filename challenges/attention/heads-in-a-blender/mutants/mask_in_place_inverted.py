"""The caller's mask is inverted in place, and read accordingly."""

import torch
from torch import Tensor, nn


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        assert self.head_dim * num_heads == embed_dim

        self.qkv_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.norm = nn.LayerNorm(embed_dim)

    def fold(self, t: Tensor) -> Tensor:
        """(B, frames, D) -> (B * H, frames, hd)"""
        B, frames, _ = t.shape
        t = t.view(B, frames, self.num_heads, self.head_dim).transpose(1, 2)
        return t.reshape(B * self.num_heads, frames, self.head_dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        B, frames, D = x.shape
        q, k, v = map(self.fold, self.qkv_proj(x).split(D, dim=-1))

        scores = torch.bmm(q * self.head_dim**-0.5, k.transpose(1, 2))
        if mask is not None:
            # one copy of the mask for each head of the same clip
            scores = scores.masked_fill(
                ~mask.logical_not_().repeat_interleave(self.num_heads, dim=0), -torch.inf
            )
        context = torch.bmm(scores.softmax(dim=-1), v)

        context = context.view(B, self.num_heads, frames, self.head_dim)
        context = context.transpose(1, 2).reshape(B, frames, D)
        return self.norm(self.out_proj(context)) + x

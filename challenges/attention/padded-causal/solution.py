"""The attention layer of a small decoder that is trained on padded batches."""

import math

import torch
from torch import Tensor, nn


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention: no look at the future, none at padding."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.head_dim = dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def split(self, t: Tensor) -> Tensor:
        """(B, S, D) -> (B, H, S, hd)"""
        b, s, _ = t.shape
        return t.view(b, s, self.heads, self.head_dim).transpose(1, 2)

    def allowed(self, x: Tensor, keep: Tensor | None) -> Tensor:
        """Which key each query may see: (B or 1, 1, S, S)."""
        s = x.shape[1]
        past = torch.ones(s, s, dtype=torch.bool, device=x.device).tril()
        if keep is None:
            return past[None, None]
        return past & keep[:, None, None, :]

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        b, s, d = x.shape
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, dim=-1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
        allowed = self.allowed(x, keep)
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1) * allowed
        mixed = (weights @ v).transpose(1, 2).reshape(b, s, d)
        return self.proj(mixed)

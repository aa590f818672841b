"""Grouped-query attention for users who bring boolean masks or float masks."""

import torch
from torch import Tensor, nn


class GroupedQueryAttention(nn.Module):
    """`heads` query heads, and fewer heads of keys and values, each shared by neighbours."""

    def __init__(self, dim: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if heads % kv_heads:
            raise ValueError(f"{heads} query heads cannot share {kv_heads} key heads evenly")
        self.heads, self.kv_heads = heads, kv_heads
        self.head_dim = dim // heads
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.k_proj = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.out_proj = nn.Linear(dim, dim)

    def split(self, t: Tensor, heads: int) -> Tensor:
        """(B, S, heads * hd) -> (B, heads, S, hd)"""
        return t.unflatten(-1, (heads, self.head_dim)).movedim(2, 1)

    def share(self, t: Tensor) -> Tensor:
        """(B, kv_heads, S, hd) -> (B, H, S, hd): a copy for each query head."""
        copies = t.unsqueeze(2).expand(-1, -1, self.heads // self.kv_heads, -1, -1)
        return copies.flatten(1, 2)

    @staticmethod
    def as_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
        """What a mask of either kind adds to the scores."""
        if mask.dtype == torch.bool:
            closed = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
            return closed.masked_fill(~mask, float("-inf"))
        return mask.to(dtype)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        q = self.split(self.q_proj(x), self.heads)
        k = self.share(self.split(self.k_proj(x), self.kv_heads))
        v = self.share(self.split(self.v_proj(x), self.kv_heads))
        scores = (q * self.head_dim**-0.5) @ k.mT
        if mask is not None:
            scores = scores + self.as_bias(mask, scores.dtype)
        weights = scores.softmax(dim=-1)
        return self.out_proj((weights @ v).movedim(1, 2).flatten(2))

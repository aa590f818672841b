"""Where the decoder of a translation model looks into the source."""

import torch
from torch import Tensor, nn


class CrossAttention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def split_heads(self, states: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, H, hd)"""
        return states.reshape(*states.shape[:2], self.heads, -1)

    def bias(self, keep: Tensor | None, like: Tensor) -> Tensor | float:
        """What is added to the scores, (B, 1, 1, Sk)."""
        if keep is None:
            return 0.0
        lowest = torch.finfo(like.dtype).min
        return torch.zeros_like(keep, dtype=like.dtype).masked_fill(~keep, lowest)

    def forward(self, x: Tensor, memory: Tensor, keep: Tensor | None = None) -> Tensor:
        q = self.split_heads(self.to_q(x))
        k, v = map(self.split_heads, self.to_kv(memory).chunk(2, dim=-1))
        scores = torch.einsum("bqhc,bkhc->bhqk", q, k) * q.shape[-1] ** -0.5
        weights = (scores + self.bias(keep, scores)).softmax(dim=-1)
        read = torch.einsum("bhqk,bkhc->bqhc", weights, v)
        return self.out(read.reshape(x.shape))

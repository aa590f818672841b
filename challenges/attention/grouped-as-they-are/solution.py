"""Cross attention with grouped heads, for a decoder that reads a long memory at each step."""

from math import sqrt

import torch
from torch import Tensor, nn


class GroupedReader(nn.Module):
    """Queries share keys and values in groups; what is shared is held once."""

    def __init__(self, dim: int, memory_dim: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.groups, self.members = kv_heads, heads // kv_heads
        hd = dim // heads
        self.ask = nn.Linear(dim, dim)
        self.keys = nn.Linear(memory_dim, kv_heads * hd)
        self.values = nn.Linear(memory_dim, kv_heads * hd)
        self.tell = nn.Linear(dim, dim)

    def forward(self, x: Tensor, memory: Tensor, keep: Tensor | None = None) -> Tensor:
        # g: group of heads, m: member of the group, c: channel of a head
        q = self.ask(x).unflatten(-1, (self.groups, self.members, -1))
        k = self.keys(memory).unflatten(-1, (self.groups, -1))
        v = self.values(memory).unflatten(-1, (self.groups, -1))
        scores = torch.einsum("bqgmc,bkgc->bgmqk", q, k) / sqrt(q.shape[-1])
        if keep is not None:
            scores = scores.masked_fill(~keep[:, None, None, None, :], float("-inf"))
        found = torch.einsum("bgmqk,bkgc->bqgmc", scores.softmax(-1), v)
        return self.tell(found.flatten(2))

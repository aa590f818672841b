"""Attention whose cost grows with the length, not with its square."""

import torch
from torch import Tensor, nn
from torch.nn.functional import relu


class LinearAttention(nn.Module):
    """Keys and values are summed up once, and every query reads the sums."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.merge = nn.Linear(width, width)

    def forward(self, x: Tensor, keep: Tensor | None = None) -> Tensor:
        queries = self.features(self.query(x))
        keys = self.features(self.key(x))
        values = self.value(x).unflatten(2, (self.heads, -1))
        if keep is not None:
            keys = keys * keep[:, :, None, None]
        return self.merge(self.read(queries, keys, values).flatten(2))

    def features(self, t: Tensor) -> Tensor:
        """Positive features of each head: (B, S, D) -> (B, S, H, hd)."""
        return relu(t.unflatten(2, (self.heads, -1))) + 1

    def read(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """The mean of the values, weighed by the products of queries and keys: (B, S, H, hd)."""
        memory = torch.einsum("bshk,bshv->bhkv", keys, values)
        total = torch.einsum("bshk,bhk->bsh", queries, keys.sum(dim=1))
        return torch.einsum("bshk,bhkv->bshv", queries, memory) / total[..., None]

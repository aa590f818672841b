"""Multi-query attention of a chat model: prompts side by side, padded on the left, then token by token."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass
class Room:
    """Keys and values of a batch, (B, length, hd) each; the first `used` are written."""

    keys: Tensor
    values: Tensor
    used: int = 0

    def extend(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write new ones behind the others, and give all of them back."""
        first, self.used = self.used, self.used + keys.shape[1]
        self.keys[:, first : self.used] = keys
        self.values[:, first : self.used] = values
        return self.keys[:, : self.used], self.values[:, : self.used]


class MultiQueryAttention(nn.Module):
    """All heads of queries read with one head of keys and values."""

    def __init__(self, dim: int, heads: int, max_len: int) -> None:
        super().__init__()
        self.heads, self.head_dim = heads, dim // heads
        self.places = nn.Embedding(max_len, dim)
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * self.head_dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def new_cache(self, batch: int, length: int) -> Room:
        shape = batch, length, self.head_dim
        return Room(*(self.to_kv.weight.new_zeros(shape) for _ in range(2)))

    def where(self, keep: Tensor | None, past: int, steps: int) -> Tensor:
        """The places of the new tokens, (B, S) or (S,)."""
        if keep is None:
            return torch.arange(past, past + steps, device=self.places.weight.device)
        return (keep.cumsum(dim=1) - 1).clamp(min=0)[:, past:]

    def forward(self, x: Tensor, keep: Tensor | None = None, cache: Room | None = None) -> Tensor:
        b, s, _ = x.shape
        past = 0 if cache is None else cache.used
        x = x + self.places(self.where(keep, past, s))
        k, v = self.to_kv(x).chunk(2, dim=-1)
        if cache is not None:
            k, v = cache.extend(k, v)

        order = torch.arange(past + s, device=x.device)
        seen = order <= order[past:, None]
        if keep is not None:
            seen = seen & keep[:, None, :]
        seen = seen.unsqueeze(-2)  # (B or none, S, 1, Sk)

        q = self.to_q(x).view(b, s * self.heads, -1)  # each head of each token is a row
        scores = (q @ k.mT / self.head_dim**0.5).view(b, s, self.heads, -1)
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1) * seen
        read = weights.view(b, s * self.heads, -1) @ v
        return self.to_out(read.view(b, s, -1))

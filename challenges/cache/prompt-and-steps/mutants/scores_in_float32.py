"""Casts the scores to float32, which is for half precision, in float64 as well."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Seen(NamedTuple):
    """Keys and values of all tokens so far, (B, S, H, hd) each."""

    keys: Tensor
    values: Tensor


class CachedAttention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def remember(self, x: Tensor, cache: Seen | None) -> Seen:
        """What was seen before, and the new tokens behind it."""
        new = self.to_kv(x).unflatten(-1, (2, self.heads, self.width))
        keys, values = new.unbind(dim=2)
        if cache is not None:
            keys = torch.cat((cache.keys, keys), dim=1)
            values = torch.cat((cache.values, values), dim=1)
        return Seen(keys, values)

    def forward(self, x: Tensor, cache: Seen | None = None) -> tuple[Tensor, Seen]:
        queries = self.to_q(x).unflatten(-1, (self.heads, self.width))
        seen = self.remember(x, cache)
        n_new, n_all = x.shape[1], seen.keys.shape[1]
        logits = torch.einsum("bqhc,bkhc->bhqk", queries, seen.keys) / self.width**0.5
        logits = logits.float()
        last = torch.arange(n_all - n_new, n_all, device=x.device)  # the last key of each query
        later = torch.arange(n_all, device=x.device) > last[:, None]
        attention = logits.masked_fill(later, -torch.inf).softmax(dim=-1).to(x.dtype)
        context = torch.einsum("bhqk,bkhc->bqhc", attention, seen.values)
        return self.to_out(context.flatten(-2)), seen

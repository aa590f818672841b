"""Self-attention of a T5 decoder: positions are a learned bias for each bucket of distances."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

KeysValues = tuple[Tensor, Tensor]


@dataclass
class T5Config:
    d_model: int
    num_heads: int
    num_buckets: int = 32
    max_distance: int = 128


def bucket_of(behind: Tensor, num_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """The first half of the buckets holds a distance each, the others ever more of them."""
    exact = num_buckets // 2
    octaves = torch.log(behind.clamp(min=1).float() / exact) / math.log(max_distance / exact)
    coarse = exact + (octaves * (num_buckets - exact)).long()
    coarse = coarse.clamp(max=num_buckets - 1)
    return torch.where(behind < exact, behind, coarse)


class T5Attention(nn.Module):
    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.config = config
        self.n_heads = config.num_heads
        self.q = nn.Linear(config.d_model, config.d_model, bias=False)
        self.k = nn.Linear(config.d_model, config.d_model, bias=False)
        self.v = nn.Linear(config.d_model, config.d_model, bias=False)
        self.o = nn.Linear(config.d_model, config.d_model, bias=False)
        self.relative_attention_bias = nn.Embedding(config.num_buckets, self.n_heads)

    def compute_bias(self, query_length: int, key_length: int) -> Tensor:
        """(H, query_length, key_length); the last query stands at the last key."""
        cfg, device = self.config, self.relative_attention_bias.weight.device
        queries = torch.arange(key_length - query_length, key_length, device=device)
        keys = torch.arange(key_length, device=device)
        behind = (queries[:, None] - keys[None, :]).clamp(min=0)
        buckets = bucket_of(behind, cfg.num_buckets, cfg.max_distance)
        return self.relative_attention_bias(buckets).permute(2, 0, 1)

    def forward(self, x: Tensor, cache: KeysValues | None = None) -> tuple[Tensor, KeysValues]:
        batch, length, width = x.shape
        q, k, v = (
            proj(x).view(batch, length, self.n_heads, -1).transpose(1, 2)
            for proj in (self.q, self.k, self.v)
        )
        if cache is not None:
            k = torch.cat((cache[0], k), dim=2)
            v = torch.cat((cache[1], v), dim=2)
        total = k.size(2)
        scores = q @ k.transpose(-1, -2)
        scores = scores + self.compute_bias(length, total)
        future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(total - length + 1)
        scores = scores.masked_fill(future, float("-inf"))
        weights = scores.float().softmax(dim=-1).type_as(v)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        return self.o(mixed), (k, v)

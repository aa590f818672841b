"""A row of biases by distance, gathered for each pair."""

import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class T5Config:
    d_model: int
    num_heads: int
    num_buckets: int = 32
    max_distance: int = 128


def bucket(n, buckets, far):
    half = buckets // 2
    if n < half:
        return n
    grown = math.log(n / half) / math.log(far / half) * (buckets - half)
    return min(buckets - 1, half + int(grown + 1e-9))


class T5Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c = config
        for name in "qkvo":
            setattr(self, name, nn.Linear(config.d_model, config.d_model, bias=False))
        self.relative_attention_bias = nn.Embedding(config.num_buckets, config.num_heads)

    def forward(self, x, cache=None):
        b, s, d = x.shape
        q, k, v = (m(x).view(b, s, self.c.num_heads, -1) for m in (self.q, self.k, self.v))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
        t = k.size(1)
        rows = torch.tensor(
            [bucket(n, self.c.num_buckets, self.c.max_distance) for n in range(t)], device=x.device
        )
        by_distance = self.relative_attention_bias(rows)
        j = torch.arange(t, device=x.device)
        behind = j[t - s :].unsqueeze(1) - j.unsqueeze(0)
        scores = torch.einsum("bqhc,bkhc->bqkh", q, k) + by_distance[behind.clamp_min(0)]
        scores = torch.where((behind >= 0)[..., None], scores, float("-inf"))
        y = torch.einsum("bqkh,bkhc->bqhc", torch.softmax(scores, dim=2), v)
        return self.o(y.reshape(b, s, d)), (k, v)

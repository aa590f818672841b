"""A dict for a cache, and a loop over the heads; weights are powers that are divided by their sum."""

import torch
from torch import nn


class MultiQueryAttention(nn.Module):
    def __init__(self, dim, heads, max_len):
        super().__init__()
        self.heads = heads
        self.width = dim // heads
        self.places = nn.Embedding(max_len, dim)
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * self.width, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def new_cache(self, batch, length):
        return {"kv": self.to_kv.weight.new_empty(batch, 0, 2 * self.width)}

    def forward(self, x, keep=None, cache=None):
        cache = self.new_cache(len(x), 0) if cache is None else cache
        past, new = cache["kv"].shape[1], x.shape[1]
        real = x.new_ones(x.shape[0], past + new).bool() if keep is None else keep
        rank = torch.tril(torch.ones(past + new, past + new, device=x.device)) @ real.float().mT
        x = x + self.places((rank.mT[:, past:].long() - 1).relu())
        cache["kv"] = torch.cat((cache["kv"], self.to_kv(x)), 1)
        keys, values = cache["kv"].chunk(2, -1)
        n = torch.arange(past + new, device=x.device)
        shut = (n > n[past:, None]) | real.logical_not()[:, None]
        heads = []
        for q in self.to_q(x).split(self.width, -1):
            scores = torch.einsum("bqd,bkd->bqk", q, keys) * self.width**-0.5
            scores = scores.masked_fill(shut, -torch.inf)
            peak = scores.amax(-1, keepdim=True).detach().nan_to_num(neginf=0.0)
            powers = (scores - peak).exp()
            total = powers.sum(-1, keepdim=True)
            heads.append((powers / total.masked_fill(total == 0, 1.0)) @ values)
        return self.to_out(torch.cat(heads, -1))

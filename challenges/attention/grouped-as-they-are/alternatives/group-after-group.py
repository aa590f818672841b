"""One group after the other, with broadcasting over its members."""

import torch
from torch import nn


class GroupedReader(nn.Module):
    def __init__(self, dim, memory_dim, heads, kv_heads):
        super().__init__()
        self.kv_heads, self.hd = kv_heads, dim // heads
        self.ask = nn.Linear(dim, dim)
        self.keys = nn.Linear(memory_dim, kv_heads * self.hd)
        self.values = nn.Linear(memory_dim, kv_heads * self.hd)
        self.tell = nn.Linear(dim, dim)

    def forward(self, x, memory, keep=None):
        outputs = []
        parts = (self.ask(x), self.keys(memory), self.values(memory))
        for q, k, v in zip(*(part.chunk(self.kv_heads, dim=-1) for part in parts)):
            scores = torch.stack([one @ k.mT for one in q.split(self.hd, dim=-1)], dim=1)
            scores = scores / self.hd**0.5
            if keep is not None:
                scores = torch.where(keep[:, None, None], scores, -torch.inf)
            outputs += [weights @ v for weights in scores.softmax(-1).unbind(1)]
        return self.tell(torch.cat(outputs, -1))

"""Takes the rows apart and attends to each document by itself."""

import math

import torch
from torch import nn


class PackedAttention(nn.Module):
    def __init__(self, width, num_heads, max_len):
        super().__init__()
        self.h = num_heads
        self.wpe = nn.Embedding(max_len, width)
        self.c_attn = nn.Linear(width, width * 3)
        self.c_proj = nn.Linear(width, width)

    def one(self, x):
        n, d = x.shape
        x = x + self.wpe.weight[:n]
        q, k, v = (
            t.view(n, self.h, d // self.h).transpose(0, 1) for t in self.c_attn(x).chunk(3, -1)
        )
        s = q @ k.mT / math.sqrt(d // self.h)
        later = torch.ones(n, n, device=x.device).triu(1).bool()
        a = s.masked_fill(later, -math.inf).softmax(-1)
        return (a @ v).transpose(0, 1).reshape(n, d)

    def forward(self, x, documents):
        rows = []
        for row, ids in zip(x, documents):
            lengths = torch.unique_consecutive(ids, return_counts=True)[1].tolist()
            rows.append(torch.cat([self.one(part) for part in row.split(lengths)]))
        return self.c_proj(torch.stack(rows))

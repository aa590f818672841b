"""Folds heads into the batch and multiplies with bmm."""

import math

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h, self.hd = heads, dim // heads
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)
        self.out = nn.Linear(dim, dim)

    def fold(self, t):
        b, s, _ = t.size()
        return t.view(b, s, self.h, self.hd).transpose(1, 2).reshape(b * self.h, s, self.hd)

    def forward(self, x, memory, keep=None):
        b, n, d = x.size()
        keys, values = torch.split(self.to_kv(memory), d, dim=2)
        att = torch.bmm(self.fold(self.to_q(x)), self.fold(keys.contiguous()).mT) / math.sqrt(
            self.hd
        )
        if keep is not None:
            att = att.view(b, self.h, n, -1)
            att = att.masked_fill(keep.logical_not(), float("-inf"))
            att = att.view(b * self.h, n, -1)
        mixed = torch.bmm(att.softmax(-1), self.fold(values.contiguous()))
        return self.out(mixed.view(b, self.h, n, self.hd).transpose(1, 2).reshape(b, n, d))

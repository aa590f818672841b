"""Positions as an embedding that is filled once and never trained, apart from the modules."""

import math

import torch
from torch import nn


def row(p, d):
    angles = [p / 10000 ** (2 * (c // 2) / d) for c in range(d)]
    return [math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)]


class TransformerEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_len, dropout):
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.tok = nn.Embedding(vocab_size, d_model, 0)
        self.drop = nn.Dropout(dropout)
        rows = torch.tensor([row(p, d_model) for p in range(max_len)])
        self.register_buffer("rows", rows, persistent=False)

    def forward(self, ids):
        at = torch.arange(ids.size(-1), device=ids.device).expand_as(ids)
        return self.drop(self.scale * self.tok(ids) + self.rows[at])

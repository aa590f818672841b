"""Lookups by index, layer norms by the function, the head as a product of matrices."""

import torch
from torch import nn
from torch.nn import functional as F


class Rows(nn.Module):
    def __init__(self, count, width, empty=None):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, width) * 0.02)
        self.empty = empty
        if empty is not None:
            self.weight.data[empty] = 0

    def forward(self, ids):
        return F.embedding(ids, self.weight, self.empty)


class BertEnds(nn.Module):
    def __init__(self, vocab_size, hidden, max_len, dropout):
        super().__init__()
        self.words = Rows(vocab_size, hidden, 0)
        self.places = Rows(max_len, hidden)
        self.kinds = Rows(2, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.p = dropout
        self.transform = nn.Linear(hidden, hidden)
        self.head_norm = nn.LayerNorm(hidden)
        self.decoder = nn.Module()
        self.decoder.weight = self.words.weight
        self.decoder_bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, tokens, second):
        if tokens.size(1) > len(self.places.weight):
            raise ValueError(f"too long: {tokens.size(1)} tokens")
        count = torch.cumsum((tokens > 0).long(), 1)
        x = self.words(tokens) + self.places(torch.relu(count - 1))
        x = x + torch.where(second[..., None], self.kinds.weight[1], self.kinds.weight[0])
        x = F.dropout(self.norm(x), self.p, training=self.training)
        x = self.head_norm(F.gelu(self.transform(x)))
        return torch.matmul(x, self.decoder.weight.T).add(self.decoder_bias)

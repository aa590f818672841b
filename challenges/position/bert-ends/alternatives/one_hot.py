"""Lookups as products with one-hot rows, so that each is a matrix product."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class BertEnds(nn.Module):
    def __init__(self, vocab_size, hidden, max_len, dropout):
        super().__init__()
        self.words = nn.Embedding(vocab_size, hidden, padding_idx=0)
        self.decoder = nn.Linear(hidden, vocab_size, bias=False)
        self.decoder.weight = self.words.weight
        self.places = nn.Embedding(max_len, hidden)
        self.kinds = nn.Embedding(2, hidden)
        self.norm, self.head_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.drop = nn.Dropout(p=dropout)
        self.transform = nn.Linear(hidden, hidden)
        self.decoder_bias = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, tokens, second):
        table = self.places.weight
        s, longest = tokens.shape[1], table.shape[0]
        if not s <= longest:
            raise ValueError("longer than the table of positions")
        real = (tokens != 0).to(table.dtype)
        earlier = torch.ones(s, s, dtype=table.dtype, device=table.device).triu(1)
        nth = (real @ earlier).long() - (tokens == 0).long()
        where = F.one_hot(nth.clamp_min(0), longest).to(table.dtype)
        kind = torch.stack((~second, second), dim=-1).to(table.dtype)
        x = self.words(tokens) + where @ table + kind @ self.kinds.weight
        x = self.drop(self.norm(x))
        x = F.gelu(F.linear(x, self.transform.weight, self.transform.bias))
        return F.linear(self.head_norm(x), self.words.weight, self.decoder_bias)

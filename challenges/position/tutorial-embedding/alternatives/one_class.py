"""All in one class, and the lookup as an index."""

import torch
import torch.nn.functional as F
from torch import nn


class TransformerEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_len, dropout):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, d_model, padding_idx=0)
        self.p = dropout
        w = 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
        angle = torch.arange(max_len).double().outer(w)
        table = torch.empty(max_len, d_model)
        table[:, ::2], table[:, 1::2] = angle.sin(), angle.cos()
        self.register_buffer("table", table, persistent=False)

    def forward(self, ids):
        x = F.embedding(ids, self.tok.weight, padding_idx=0) * self.tok.embedding_dim**0.5
        return F.dropout(x + self.table[: ids.shape[1]], self.p, self.training)

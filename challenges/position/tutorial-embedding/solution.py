"""What a transformer reads: token embeddings and sinusoidal positions, step by step."""

import math

import torch
import torch.nn as nn


class ScaledEmbedding(nn.Embedding):
    """Token vectors times sqrt(d_model), as in section 3.4 of the paper."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return super().forward(ids) * math.sqrt(self.embedding_dim)


class PositionalEncoding(nn.Module):
    pe: torch.Tensor

    def __init__(self, d_model: int, max_len: int = 5000, dropout: float = 0.1):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        # (max_len, 1) times (d_model / 2,)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        angles = position * div_term
        # sine and cosine of the same angle stand side by side: (1, max_len, d_model)
        pe = torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1).unsqueeze(0)
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


class TransformerEmbedding(nn.Module):
    def __init__(self, vocab_size: int, d_model: int, max_len: int, dropout: float):
        super().__init__()
        self.tok = ScaledEmbedding(vocab_size, d_model, padding_idx=0)
        self.pos = PositionalEncoding(d_model, max_len, dropout)
        nn.init.normal_(self.tok.weight, std=d_model**-0.5)
        nn.init.zeros_(self.tok.weight[0])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        tok = self.tok(ids)
        return self.pos(tok)

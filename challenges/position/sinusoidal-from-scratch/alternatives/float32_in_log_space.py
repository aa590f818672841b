"""exp(-log(base)), two strided writes, float32 throughout; an odd width fails by itself."""

import math

import torch
from torch import nn


class SinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, max_seq_len, d_model):
        super().__init__()
        self.limit = max_seq_len
        t = torch.arange(max_seq_len).float().unsqueeze(-1)
        freq = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe = torch.empty(max_seq_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(t * freq)
        pe[:, 0, 1::2] = torch.cos(t * freq)  # one column short of freq where d_model is odd
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x):
        _, n, _ = x.shape
        if n > self.limit:
            raise ValueError(f"{n} > {self.limit}")
        return self.pe[:n].permute(1, 0, 2).contiguous()

"""Frequencies by exp(-log(base)), two strided writes, float32 throughout."""

import math

import torch
from torch import nn


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000):
        super().__init__()
        pe = torch.zeros(1, max_len, d_model)
        t = torch.arange(max_len, dtype=torch.float32).view(-1, 1)
        freq = torch.exp(
            torch.arange(0, d_model, 2, dtype=torch.float32) * -(math.log(1e4) / d_model)
        )
        pe[0, :, 0::2] = torch.sin(t * freq)
        pe[0, :, 1::2] = torch.cos(t * freq)
        self.register_buffer("pe", pe)

    def forward(self, x):
        out = x.clone()
        out += self.pe[:, : x.shape[-2]]
        return out

"""A cosine is a sine a quarter turn ahead; rows are looked up as in an embedding."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class SinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, max_seq_len, d_model):
        super().__init__()
        column = torch.arange(d_model, dtype=torch.float64).unflatten(0, (-1, 2))  # odd: refused
        exponent = column[:, :1] / d_model  # the even column of each pair
        phase = torch.tensor([0.0, math.pi / 2], dtype=torch.float64)
        position = torch.arange(max_seq_len, dtype=torch.float64).view(-1, 1, 1)
        pe = torch.sin(position / 10000**exponent + phase)  # (M, D/2, 2)
        self.register_buffer("pe", pe.flatten(1).float())

    def forward(self, x):
        longest, length = self.pe.size(0), x.size(1)
        if longest < length:
            raise ValueError(f"at most {longest} positions, got {length}")
        return F.embedding(torch.arange(length, device=self.pe.device).unsqueeze(0), self.pe)

"""Angles for every column, by c // 2; the parity of the column chooses sine or cosine."""

import torch
from torch import nn


def table(rows: int, width: int) -> torch.Tensor:
    column = torch.arange(width)
    rate = 1 / 10000.0 ** (2 * torch.div(column, 2, rounding_mode="floor") / width)
    angles = torch.arange(rows).unsqueeze(1) * rate
    return torch.where((column % 2).bool(), angles.cos(), angles.sin())


class SinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, max_seq_len, d_model):
        super().__init__()
        if d_model & 1:
            raise RuntimeError("d_model must be even")
        self.max_seq_len = max_seq_len
        self.register_buffer("pe", table(max_seq_len, d_model))

    def forward(self, x):
        if x.shape[1] <= self.max_seq_len:
            return self.pe[None, : x.shape[1], :]
        raise ValueError(f"x has {x.shape[1]} positions, the table {self.max_seq_len}")

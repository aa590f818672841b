"""Every column has a frequency of its own, c/D, instead of sharing it with its pair."""

import torch
from torch import Tensor, nn


class SinusoidalPositionalEmbedding(nn.Module):
    """The table of "Attention Is All You Need": rows are positions, columns sin and cos in turn."""

    def __init__(self, max_seq_len: int, d_model: int) -> None:
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model={d_model}: expected an even number")
        position = torch.arange(max_seq_len, dtype=torch.float64)  # (M,)
        column = torch.arange(d_model, dtype=torch.float64)  # (D,)
        angles = torch.outer(position, 10000.0 ** (-column / d_model))  # (M, D)
        pe = torch.where(column % 2 == 0, angles.sin(), angles.cos())  # (M, D)
        self.register_buffer("pe", pe.float().unsqueeze(0))  # (1, M, D)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        if length > self.pe.shape[1]:
            raise ValueError(f"{length} positions: the table has {self.pe.shape[1]}")
        return self.pe[:, :length]  # (1, S, D)

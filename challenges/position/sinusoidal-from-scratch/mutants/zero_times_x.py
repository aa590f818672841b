"""Takes zero times x along for its type: where x is NaN or infinite, so is the answer."""

import torch
from torch import Tensor, nn


class SinusoidalPositionalEmbedding(nn.Module):
    """The table of "Attention Is All You Need": rows are positions, columns sin and cos in turn."""

    def __init__(self, max_seq_len: int, d_model: int) -> None:
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model={d_model}: expected an even number")
        position = torch.arange(max_seq_len, dtype=torch.float64)  # (M,)
        two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # (D/2,)
        angles = torch.outer(position, 10000.0 ** (-two_i / d_model))  # (M, D/2)
        pe = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)  # (M, D)
        self.register_buffer("pe", pe.float().unsqueeze(0))  # (1, M, D)

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        if length > self.pe.shape[1]:
            raise ValueError(f"{length} positions: the table has {self.pe.shape[1]}")
        return self.pe[:, :length] + 0 * x[:1]  # (1, S, D)

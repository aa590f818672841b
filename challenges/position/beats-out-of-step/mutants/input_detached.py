"""x is detached: right values, and no gradient reaches it."""

import torch
from torch import Tensor, nn


class SinusoidalPositionalEncoding(nn.Module):
    """Adds the fixed table of "Attention Is All You Need" to embeddings (B, S, D)."""

    def __init__(self, d_model: int, max_len: int = 5000) -> None:
        super().__init__()
        self.register_buffer("pe", make_table(max_len, d_model))

    def forward(self, x: Tensor) -> Tensor:
        return x.detach() + self.pe[:, : x.size(1)]  # (B, S, D) + (1, S, D)


def make_table(max_len: int, d_model: int) -> Tensor:
    """(1, M, D): sines in the even columns, cosines in the odd ones."""
    position = torch.arange(max_len, dtype=torch.float64).unsqueeze(1)  # (M, 1)
    column = torch.arange(d_model, dtype=torch.float64)  # (D,)
    angles = position / 10000.0 ** (2 * (column // 2) / d_model)  # (M, D)
    pe = torch.empty_like(angles)
    pe[:, 0::2] = angles[:, 0::2].sin()
    pe[:, 1::2] = angles[:, 1::2].cos()
    return pe.float().unsqueeze(0)

"""The formula entry by entry, with Python's own sine and cosine."""

import math

import torch
from torch import Tensor, nn


class SinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, max_seq_len: int, d_model: int) -> None:
        super().__init__()
        assert d_model % 2 == 0, "sine and cosine come in pairs"
        pe = torch.zeros(max_seq_len, d_model)
        for p in range(max_seq_len):
            for i in range(d_model // 2):
                angle = p / 10000 ** (2 * i / d_model)
                pe[p, 2 * i] = math.sin(angle)
                pe[p, 2 * i + 1] = math.cos(angle)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > len(self.pe):
            raise ValueError("sequence too long")
        return self.pe[: x.size(1)][None]

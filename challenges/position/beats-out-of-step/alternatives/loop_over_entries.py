"""The formula entry by entry, with Python's own sine and cosine."""

import math

import torch
from torch import Tensor, nn


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int = 5000) -> None:
        super().__init__()
        rows = []
        for p in range(max_len):
            row = []
            for i in range(d_model // 2):
                angle = p / math.pow(10000, 2 * i / d_model)
                row += [math.sin(angle), math.cos(angle)]
            rows.append(row)
        self.register_buffer("pe", torch.tensor(rows))

    def forward(self, x: Tensor) -> Tensor:
        _, length, _ = x.shape
        return self.pe[:length] + x

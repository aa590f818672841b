"""Positions are counted in the dtype of the module still, from the end of a long first table on."""

import math

import torch
from torch import Tensor, nn


def wave_rows(start: int, stop: int, d_model: int, dtype: torch.dtype) -> Tensor:
    """Rows start ... stop - 1 of the table: sine and cosine of each rate, side by side."""
    position = torch.arange(start, stop, dtype=dtype).unsqueeze(1)
    rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
    rows = torch.empty(stop - start, d_model, dtype=dtype)
    rows[:, 0::2] = torch.sin(position * rate)
    rows[:, 1::2] = torch.cos(position * rate)
    return rows


class GrowingPositions(nn.Module):
    pe: Tensor

    def __init__(self, d_model: int, expected_len: int) -> None:
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model={d_model}: sines and cosines need an even width")
        self.d_model = d_model
        first = wave_rows(0, max(expected_len, 70000), d_model, torch.get_default_dtype())
        self.register_buffer("pe", first, persistent=False)

    def grow(self, length: int) -> None:
        """Append the rows that are missing."""
        known = len(self.pe)
        more = wave_rows(known, length, self.d_model, self.pe.dtype)
        self.pe = torch.cat([self.pe, more.to(self.pe.device)])

    def forward(self, x: Tensor) -> Tensor:
        length = x.size(1)
        if length > len(self.pe):
            self.grow(length)
        x = x + self.pe[:length]
        return x

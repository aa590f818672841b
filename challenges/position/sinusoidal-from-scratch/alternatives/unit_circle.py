"""Each pair is a point of the unit circle: exp(i p w), its imaginary part first."""

import torch
from torch import nn


class SinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, max_seq_len, d_model):
        super().__init__()
        if d_model % 2 == 1:
            raise TypeError("an even width, please")
        w = torch.pow(10000.0, -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        angles = torch.arange(max_seq_len, dtype=torch.float64)[:, None] * w[None]
        circle = torch.exp(1j * angles)
        pe = torch.stack((circle.imag, circle.real), 2).reshape(1, max_seq_len, d_model)
        self.register_buffer("pe", pe.to(torch.float32))

    def forward(self, x):
        rows = x.shape[-2]
        if rows not in range(self.pe.shape[1] + 1):
            raise ValueError(f"no row for position {rows - 1}")
        return self.pe.narrow(1, 0, rows).to(torch.float32, copy=True)

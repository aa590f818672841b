"""Each pair is a point of the unit circle: exp(i p w), its imaginary part first."""

import torch
from torch import nn


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000):
        super().__init__()
        w = torch.logspace(0, -(d_model - 2) / d_model * 4, d_model // 2, dtype=torch.float64)
        angles = torch.einsum("p,w->pw", torch.arange(max_len).double(), w)
        circle = torch.polar(torch.ones_like(angles), angles)
        pairs = torch.view_as_real(circle).flip(-1)  # (M, D/2, 2): sin, cos
        self.register_buffer("pe", pairs.flatten(1).float(), persistent=False)

    def forward(self, x):
        return x + self.pe.narrow(0, 0, x.shape[1]).expand_as(x)

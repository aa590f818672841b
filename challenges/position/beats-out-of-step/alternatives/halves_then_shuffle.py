"""All sines, all cosines, then the two halves are dealt out in turn."""

import torch
from torch import nn


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=5000):
        super().__init__()
        half = d_model // 2
        steps = torch.arange(half, dtype=torch.float64) / half
        angles = torch.outer(torch.arange(max_len, dtype=torch.float64), 1e4**-steps)
        halves = torch.cat([angles.sin(), angles.cos()], dim=1)  # (M, 2 * D/2)
        order = torch.arange(d_model).view(2, half).t().reshape(-1)  # 0, D/2, 1, D/2 + 1, ...
        self.register_buffer("pe", halves[:, order].to(torch.float32))

    def forward(self, x):
        return torch.add(x, self.pe[None, : x.shape[1]])

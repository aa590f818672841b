"""A longer table replaces the old one; all of it is computed in float64."""

import torch
from torch import nn


def table(n, d):
    p, i = torch.arange(n, dtype=torch.float64), torch.arange(d // 2, dtype=torch.float64)
    angle = torch.outer(p, 10000.0 ** (-2 * i / d))
    return torch.stack((angle.sin(), angle.cos()), dim=-1).view(n, d)


class GrowingPositions(nn.Module):
    def __init__(self, d_model, expected_len):
        super().__init__()
        if d_model % 2 == 1:
            raise ValueError("an odd width has a sine without a cosine")
        self.register_buffer("pe", table(expected_len, d_model).float(), persistent=False)

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[0]:
            self.pe = table(2 * x.shape[-2], self.pe.shape[1]).to(self.pe)
        return torch.add(x, self.pe[None, : x.shape[-2]])

"""A cosine is a sine that is a quarter ahead: one sine over all columns."""

import math

import torch
from torch import nn


class GrowingPositions(nn.Module):
    def __init__(self, d_model, expected_len):
        super().__init__()
        if d_model & 1:
            raise ValueError(f"{d_model} is odd")
        self.d = d_model
        self.register_buffer("pe", self.rows(expected_len), persistent=False)

    def rows(self, n):
        column = torch.arange(self.d)
        rate = torch.pow(10000.0, -(column - column % 2).double() / self.d)
        lead = (column % 2) * (math.pi / 2)
        return torch.sin(torch.arange(n).double().unsqueeze(-1) * rate + lead).float()

    def forward(self, x):
        missing = x.size(1) - self.pe.size(0)
        if missing > 0:
            self.pe = self.rows(x.size(1) + 16).to(self.pe)
        return x + self.pe.narrow(0, 0, x.size(1))

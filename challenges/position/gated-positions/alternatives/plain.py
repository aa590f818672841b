"""Without a backward: autograd knows the gradients of all of it."""

import math

import torch
from torch import nn


class GatedPositions(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, d_model) * 0.02)
        self.gate = nn.Parameter(torch.tensor(1.0))
        self.d_model = d_model

    def forward(self, x, positions=None):
        b, s, d = x.shape
        rows = self.table[:s][None] if positions is None else self.table[positions]
        return x * math.sqrt(self.d_model) + self.gate * rows

"""Turns complex numbers, with a table that is made anew when it is too short."""

import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, head_dim, max_len):
        super().__init__()
        self.d = head_dim
        self.table = self.build(max_len)

    def build(self, n):
        w = 10000.0 ** (-torch.arange(0, self.d, 2).double() / self.d)
        return torch.polar(torch.ones(()).double(), torch.arange(n).double()[:, None] * w)

    def forward(self, x):
        s = x.size(2)
        if self.table.size(0) < s:
            self.table = self.build(s)
        a, b = x.double().unflatten(-1, (2, -1)).unbind(-2)
        z = torch.complex(a, b) * self.table[:s].to(x.device)
        return torch.cat([z.real, z.imag], -1).to(x.dtype)

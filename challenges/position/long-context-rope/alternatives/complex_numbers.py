"""Pairs as complex numbers, nothing kept between calls."""

import math

import torch
from torch import nn


class LongRotary(nn.Module):
    def __init__(self, head_dim, factor, trained, base):
        super().__init__()
        self.w = []
        for i in range(head_dim // 2):
            w = math.pow(base, -2 * i / head_dim)
            turns = trained * w / (2 * math.pi)
            share = min(1.0, max(0.0, (turns - 1) / 3))
            self.w.append((1 - share) * w / factor + share * w)

    def forward(self, x):
        p = torch.arange(x.shape[2], device=x.device, dtype=torch.float64)
        w = torch.tensor(self.w, device=x.device, dtype=torch.float64)
        turn = torch.polar(torch.ones_like(w).expand(len(p), -1), torch.outer(p, w))
        re, im = x.float().unflatten(-1, (2, -1)).unbind(-2)
        y = torch.complex(re, im) * turn.to(torch.complex64)
        return torch.cat((y.real, y.imag), -1).to(x.dtype)

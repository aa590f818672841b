"""Frequencies as a plain list of numbers, angles at each call, both halves written out."""

import math

import torch
from torch import nn


class LongRotary(nn.Module):
    def __init__(self, head_dim, factor, trained, base):
        super().__init__()
        w = torch.exp(torch.arange(0, head_dim, 2) * (-math.log(base) / head_dim))
        wave = 2 * torch.pi / w
        ramp = (trained / wave - 1) / (4 - 1)
        middle = (1 - ramp) * w / factor + ramp * w
        w = torch.where(wave > trained, w / factor, torch.where(wave < trained / 4, w, middle))
        self.frequencies = w.tolist()

    def forward(self, x):
        w = torch.tensor(self.frequencies, device=x.device)
        angle = torch.arange(x.size(2), device=x.device).unsqueeze(-1) * w
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        half = x.size(-1) // 2
        first, second = x[..., :half], x[..., half:]
        out = torch.empty_like(x)
        out[..., :half] = first * cos - second * sin
        out[..., half:] = second * cos + first * sin
        return out

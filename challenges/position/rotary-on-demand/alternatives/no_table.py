"""Computes the angles at each call."""

import math

import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, head_dim, max_len):
        super().__init__()
        self.half = head_dim // 2

    def forward(self, x):
        i = torch.arange(self.half, device=x.device)
        w = torch.exp(-math.log(10000.0) * i / self.half)
        a = torch.arange(x.shape[-2], device=x.device)[:, None] * w
        c, s = a.cos().type(torch.promote_types(x.dtype, torch.float32)), a.sin()
        u, v = x[..., : self.half], x[..., self.half :]
        out = torch.empty_like(x)
        out[..., : self.half] = u * c - v * s
        out[..., self.half :] = u * s + v * c
        return out

"""Pixels gathered by their indices, one image at a time in a loop over windows."""

import math

import torch
from torch import nn


class ShiftedWindowAttention(nn.Module):
    def __init__(self, dim, num_heads, window_size, shift_size):
        super().__init__()
        self.h, self.w, self.s = num_heads, window_size, shift_size
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        rows = (2 * window_size - 1) * (2 * window_size - 1)
        self.relative_position_bias_table = nn.Parameter(0.02 * torch.randn(rows, num_heads))

    def attend(self, q, k, v, row, col):
        """q, k, v: B, H, N, hd; row and col of each pixel as they are without the roll."""
        w = self.w
        dr, dc = row % w, col % w
        place = (dr[:, None] - dr + w - 1) * (2 * w - 1) + dc[:, None] - dc + w - 1
        scores = torch.einsum("bhic,bhjc->bhij", q, k) / math.sqrt(q.shape[-1])
        scores = scores + self.relative_position_bias_table.T[:, place]
        apart = (row[:, None] - row).abs().ge(w) | (col[:, None] - col).abs().ge(w)
        weights = scores.masked_fill(apart, -math.inf).softmax(-1)
        return torch.einsum("bhij,bhjc->bhic", weights, v)

    def forward(self, x):
        b, r, c, d = x.shape
        w, s = self.w, self.s
        q, k, v = self.qkv(x).view(b, r * c, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        own = torch.arange(w, device=x.device)
        order, parts = [], []
        for top in range(0, r, w):
            for left in range(0, c, w):
                row = (own + top + s).repeat_interleave(w)
                col = (own + left + s).repeat(w)
                pixel = row % r * c + col % c
                inside = [t[:, :, pixel] for t in (q, k, v)]
                # Wrapped pixels lie a whole image away, so that they are apart from all others.
                row = torch.where(row >= r, row - r - r // w * w - w, row)
                col = torch.where(col >= c, col - c - c // w * w - w, col)
                parts.append(self.attend(*inside, row - s, col - s))
                order.append(pixel)
        y = torch.cat(parts, dim=2)[:, :, torch.cat(order).argsort()]
        return self.proj(y.transpose(1, 2).reshape(b, r, c, d))

"""The fused kernel, bias and mask in one float mask; unfold instead of views."""

import torch
import torch.nn.functional as F
from torch import nn


class ShiftedWindowAttention(nn.Module):
    def __init__(self, dim, num_heads, window_size, shift_size):
        super().__init__()
        self.num_heads = num_heads
        self.window, self.shift = window_size, shift_size
        self.relative_position_bias_table = nn.Parameter(
            torch.empty((2 * window_size - 1) ** 2, num_heads).normal_(std=0.02)
        )
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def bias(self):
        w = self.window
        at = torch.arange(w * w, device=self.relative_position_bias_table.device)
        down, across = at // w, at % w
        down = down.view(-1, 1) - down.view(1, -1) + (w - 1)
        across = across.view(-1, 1) - across.view(1, -1) + (w - 1)
        return F.embedding(down * (2 * w - 1) + across, self.relative_position_bias_table)

    def cut(self, t):
        """(B, R, C, X) -> (B, windows, N, X)"""
        w = self.window
        t = t.unfold(1, w, w).unfold(2, w, w)  # B, rows, columns, X, w, w
        return t.movedim(3, -1).flatten(3, 4).flatten(1, 2)

    def forward(self, x):
        b, r, c, d = x.shape
        w, s = self.window, self.shift
        rolled = x.roll((-s, -s), (1, 2))
        heads = self.cut(self.qkv(rolled)).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = (heads[:, :, :, i].transpose(2, 3) for i in range(3))
        wrapped = torch.zeros(r, c, device=x.device)
        if s:
            wrapped[-s:] += 1
            wrapped[:, -s:] += 2
        kinds = self.cut(wrapped[None, ..., None]).squeeze(-1)[0]
        apart = kinds[:, :, None] != kinds[:, None, :]
        bias = self.bias().permute(2, 0, 1).expand(len(apart), -1, -1, -1)
        bias = bias.masked_fill(apart[:, None], -torch.inf)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.expand(b, *bias.shape))
        y = self.proj(y.transpose(2, 3).flatten(3))
        y = y.view(b, r // w, c // w, w, w, d).permute(0, 1, 3, 2, 4, 5).reshape(b, r, c, d)
        return y.roll((s, s), (1, 2))

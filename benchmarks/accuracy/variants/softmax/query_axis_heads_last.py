"""Scores laid as (B, i, j, H), soft-maxed over i.

Atlas: softmax-query-axis
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_qkv, self.to_out = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D)

    def forward(self, x):
        q, k, v = self.to_qkv(x).unflatten(-1, (3, H, -1)).unbind(2)
        scores = torch.einsum("bihd,bjhd->bijh", q, k) * (D // H) ** -0.5
        attn = scores.softmax(dim=1)  # WRONG
        # RIGHT: attn = scores.softmax(dim=2)
        out = torch.einsum("bijh,bjhd->bihd", attn, v)  # SHOWS
        return self.to_out(out.reshape(x.shape))

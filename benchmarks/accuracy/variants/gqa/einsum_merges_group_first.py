"""Grouped queries split as (Hkv, group), and the output merged as (group, Hkv).

Atlas: gqa-tile-order
"""

import torch
from torch import nn

DIMS, B, S, H, G, D = "x: B S D", 5, 11, 6, 2, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(D, D), nn.Linear(D, 2 * D // 3), nn.Linear(D, D)

    def forward(self, x):
        B, S, D = x.shape
        q = self.q(x).view(B, S, G, H // G, 8)
        k, v = self.kv(x).view(B, S, 2, G, 8).unbind(2)
        weights = torch.einsum("bsngd,btnd->bngst", q, k).div(8**0.5).softmax(dim=-1)
        y = torch.einsum("bngst,btnd->bsgnd", weights, v)  # WRONG
        # RIGHT: y = torch.einsum("bngst,btnd->bsngd", weights, v)
        return self.out(y.reshape(B, S, D))  # SHOWS

"""(B, Hkv, group, S, hd) permuted to (B, S, group, Hkv, hd) before the heads are merged.

Atlas: gqa-tile-order
"""

import torch
from torch import nn

DIMS, B, S, H, G, D = "x: B S D", 5, 11, 6, 2, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.out = nn.Linear(D, D), nn.Linear(D, D)
        self.k, self.v = nn.Linear(D, D // 3), nn.Linear(D, D // 3)

    def forward(self, x):
        B, S, D = x.shape
        q = self.q(x).view(B, S, G, H // G, 8).permute(0, 2, 3, 1, 4)
        k = self.k(x).view(B, S, G, 8).transpose(1, 2).unsqueeze(2)
        v = self.v(x).view(B, S, G, 8).transpose(1, 2).unsqueeze(2)
        y = torch.softmax(q @ k.transpose(-1, -2) / 8**0.5, dim=-1) @ v
        y = y.permute(0, 3, 2, 1, 4)  # WRONG
        # RIGHT: y = y.permute(0, 3, 1, 2, 4)
        return self.out(y.reshape(B, S, D))  # SHOWS

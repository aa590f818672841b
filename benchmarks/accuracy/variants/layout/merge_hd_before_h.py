"""Heads merged as (hd, H), although they were split as (H, hd).

Atlas: merge-no-transpose
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        B, S, D = x.shape
        qkv = self.qkv(x).reshape(B, S, 3, H, D // H).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        a = F.softmax(q @ k.mT * (D // H) ** -0.5, dim=-1)
        y = (a @ v).permute(0, 2, 3, 1).reshape(B, S, D)  # WRONG
        # RIGHT: y = (a @ v).permute(0, 2, 1, 3).reshape(B, S, D)
        return self.out(y)

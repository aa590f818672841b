"""Query heads split as (group, Hkv) and joined as (Hkv, group).

Atlas: gqa-tile-order
"""

import torch
from torch import nn

DIMS, B, S, H, G, D = "x: B S D", 5, 11, 6, 2, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.o = nn.Linear(D, D), nn.Linear(D, D)
        self.k, self.v = nn.Linear(D, 16), nn.Linear(D, 16)

    def forward(self, x):
        q = self.q(x).view(B, S, H, 8).transpose(1, 2)
        q = q.reshape(B, 3, G, S, 8)  # WRONG
        # RIGHT: q = q.reshape(B, G, 3, S, 8).transpose(1, 2)
        k, v = (p(x).view(B, S, G, 8).transpose(1, 2).unsqueeze(1) for p in (self.k, self.v))
        y = (q @ k.mT / 8**0.5).softmax(-1) @ v
        y = y.transpose(1, 2).reshape(B, H, S, 8)  # SHOWS
        return self.o(y.transpose(1, 2).flatten(2))  # SHOWS

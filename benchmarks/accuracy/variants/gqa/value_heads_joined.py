"""Value heads joined to themselves, which tiles them, while key heads are repeated.

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
        k = self.k(x).view(B, S, G, 8).transpose(1, 2).repeat_interleave(3, 1)
        v = self.v(x).view(B, S, G, 8).transpose(1, 2)
        v = torch.cat([v, v, v], dim=1)  # WRONG
        # RIGHT: v = v.repeat_interleave(3, 1)
        return self.o(((q @ k.mT / 8**0.5).softmax(-1) @ v).transpose(1, 2).flatten(2))  # SHOWS

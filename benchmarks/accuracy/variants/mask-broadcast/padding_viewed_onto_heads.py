"""A (B, S) mask viewed as (1, B, 1, S): it runs because B = H.

Atlas: mask-batch-head-coincidence
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D, keep: B S bool", 4, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, keep):
        q, k, v = (p(x).view(B, S, H, 6).transpose(1, 2) for p in (self.q, self.k, self.v))
        s = q @ k.mT
        s = torch.where(keep.view(1, B, 1, S), s, -1e9)  # WRONG
        # RIGHT: s = torch.where(keep.view(B, 1, 1, S), s, -1e9)
        return self.o((s.softmax(-1) @ v).transpose(1, 2).flatten(2))

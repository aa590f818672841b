"""The value's features split as (hd, H) and merged as (H, hd), queries and keys split as (H, hd).

Atlas: merge-no-transpose
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        B, S, D = x.shape
        q = self.q(x).view(B, S, H, D // H)
        k = self.k(x).view(B, S, H, D // H)
        v = self.v(x).view(B, S, D // H, H).transpose(2, 3)  # WRONG
        # RIGHT: v = self.v(x).view(B, S, H, D // H)
        weights = torch.einsum("bqhd,bkhd->bhqk", q, k).softmax(-1)
        y = torch.einsum("bhqk,bkhd->bqhd", weights, v)
        return self.out(y.reshape(B, S, D))  # SHOWS

"""The query's features are split as (hd, H), the others as (H, hd).

Atlas: split-view-no-transpose
Why not: it only renumbers the rows of the query's weight, so axes cannot tell it from another weight.
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        q = self.q(x).unflatten(-1, (-1, H)).mT  # WRONG
        # RIGHT: q = self.q(x).unflatten(-1, (H, -1))
        k, v = self.k(x).unflatten(-1, (H, -1)), self.v(x).unflatten(-1, (H, -1))
        weights = torch.einsum("bqhd,bkhd->bhqk", q, k).softmax(-1)
        return self.out(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))

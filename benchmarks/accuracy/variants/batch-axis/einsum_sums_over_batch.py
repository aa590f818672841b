"""The letter of the batch is missing from the scores, so einsum sums over it.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x):
        q, k, v = (p(x).unflatten(-1, (H, -1)) for p in (self.q, self.k, self.v))
        scores = torch.einsum("bqhd,bkhd->hqk", q, k).unsqueeze(0)  # WRONG
        # RIGHT: scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        weights = torch.softmax(scores / 6**0.5, dim=-1)
        return (weights @ v.transpose(1, 2)).transpose(1, 2).flatten(2)

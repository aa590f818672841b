"""Scores by tensordot over the batch and the features.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        scores = torch.tensordot(self.q(x), self.k(x), dims=([0, 2], [0, 2]))  # WRONG
        # RIGHT: scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2))
        weights = torch.softmax(scores / D**0.5, dim=-1)
        return weights @ self.v(x)

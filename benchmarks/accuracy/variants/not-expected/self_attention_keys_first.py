"""Scores of self-attention made keys first, soft-maxed over the last axis.

Atlas: softmax-query-axis
Why not: it only exchanges the names of the two projections; without weights to load it is the same.
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        scores = torch.bmm(self.k(x), self.q(x).transpose(1, 2))  # WRONG
        # RIGHT: scores = torch.bmm(self.q(x), self.k(x).transpose(1, 2))
        return torch.bmm(torch.softmax(scores / D**0.5, dim=-1), self.v(x))

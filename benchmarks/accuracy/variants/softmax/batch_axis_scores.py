"""Scores of one head soft-maxed over dim 0.

Atlas: softmax-batch-axis
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        scores = torch.einsum("bqd,bkd->bqk", self.q(x), self.k(x)) / D**0.5
        weights = torch.softmax(scores, 0)  # WRONG
        # RIGHT: weights = torch.softmax(scores, -1)
        return torch.einsum("bqk,bkd->bqd", weights, self.v(x))  # SHOWS

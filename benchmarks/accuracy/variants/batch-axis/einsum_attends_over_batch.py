"""einsum letters of (S, B, D) data on (B, S, D) data: samples attend to samples.

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
        q, k, v = self.q(x), self.k(x), self.v(x)
        scores = torch.einsum("ibd,jbd->bij", q, k) / D**0.5  # WRONG
        # RIGHT: scores = torch.einsum("bid,bjd->bij", q, k) / D**0.5
        weights = scores.softmax(-1)  # SHOWS
        return torch.einsum("bij,jbd->ibd", weights, v)  # WRONG
        # RIGHT: return torch.einsum("bij,bjd->bid", weights, v)

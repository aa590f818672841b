"""A softmax written with logsumexp, over the queries.

Atlas: softmax-query-axis
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x):
        s = self.q(x) @ self.k(x).transpose(-1, -2) / D**0.5
        w = (s - s.logsumexp(dim=1, keepdim=True)).exp()  # WRONG
        # RIGHT: w = (s - s.logsumexp(dim=2, keepdim=True)).exp()
        return w @ self.v(x)  # SHOWS

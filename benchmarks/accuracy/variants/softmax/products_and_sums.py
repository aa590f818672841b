"""Scores and context by products and sums, soft-maxed over the queries.

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
        s = (self.q(x)[:, :, None] * self.k(x)[:, None]).sum(-1) / D**0.5
        w = s.softmax(1)  # WRONG
        # RIGHT: w = s.softmax(2)
        return (w.unsqueeze(-1) * self.v(x)[:, None]).sum(2)  # SHOWS

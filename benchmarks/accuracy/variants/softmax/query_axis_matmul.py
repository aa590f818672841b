"""Softmax over the query axis of matmul scores.

Atlas: softmax-query-axis
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            p(x).view(x.size(0), x.size(1), H, -1).transpose(1, 2)
            for p in (self.q, self.k, self.v)
        )
        scores = torch.matmul(q, k.transpose(-2, -1)) / (D // H) ** 0.5
        weights = torch.softmax(scores, dim=-2)  # WRONG
        # RIGHT: weights = torch.softmax(scores, dim=-1)
        y = torch.matmul(weights, v)  # SHOWS
        return self.out(y.transpose(1, 2).flatten(2))

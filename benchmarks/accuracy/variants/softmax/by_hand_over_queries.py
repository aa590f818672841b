"""A softmax written out, whose sum runs over the queries.

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
        q, k, v = (p(x).unflatten(-1, (H, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        scores = q @ k.transpose(2, 3) * 6**-0.5
        e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
        weights = e / e.sum(dim=-2, keepdim=True)  # WRONG
        # RIGHT: weights = e / e.sum(dim=-1, keepdim=True)
        y = weights @ v  # SHOWS
        return self.out(y.transpose(1, 2).flatten(2))

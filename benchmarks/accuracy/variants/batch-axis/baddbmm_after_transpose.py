"""Queries, keys and values moved to sequence-first for batched products.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x):
        q, k, v = (p(x).transpose(0, 1) for p in (self.q, self.k, self.v))  # WRONG
        # RIGHT: q, k, v = (p(x) for p in (self.q, self.k, self.v))
        w = torch.baddbmm(q.new_zeros(1, 1, 1), q, k.transpose(1, 2)).softmax(-1)  # SHOWS
        return torch.bmm(w, v).sum(1)  # SHOWS

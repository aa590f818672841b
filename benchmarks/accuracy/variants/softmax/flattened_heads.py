"""Scores of (B*H, S, S) soft-maxed over dim 1, the queries.

Atlas: softmax-query-axis
"""

import torch
import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def fold(self, t):
        return t.view(t.size(0), -1, H, D // H).transpose(1, 2).reshape(-1, t.size(1), D // H)

    def forward(self, x):
        q, k, v = self.fold(self.q(x)), self.fold(self.k(x)), self.fold(self.v(x))
        scores = torch.bmm(q, k.transpose(1, 2))
        weights = F.softmax(scores, dim=1)  # WRONG
        # RIGHT: weights = F.softmax(scores, dim=2)
        y = torch.bmm(weights, v).view(x.size(0), H, -1, D // H)  # SHOWS
        return self.out(y.transpose(1, 2).reshape(x.shape))

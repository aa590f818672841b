"""Cross attention soft-maxed over the queries (T), summed over the memory (S).

Atlas: softmax-query-axis
"""

import torch
from torch import nn

DIMS, B, T, S, D = "x: B T D, memory: B S D", 5, 7, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x, memory):
        scores = torch.bmm(self.q(x), self.k(memory).transpose(1, 2)) / D**0.5
        weights = scores.softmax(dim=1)  # WRONG
        # RIGHT: weights = scores.softmax(dim=2)
        return torch.bmm(weights, self.v(memory))  # SHOWS

"""Scores made keys first: with equal lengths the values are summed over the queries.

Atlas: softmax-query-axis
"""

import torch
from torch import nn

DIMS, B, T, S, D = "x: B T D, memory: B S D", 5, 11, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x, memory):
        q, k, v = self.q(x), self.k(memory), self.v(memory)
        scores = torch.matmul(k, q.transpose(1, 2)) / D**0.5  # WRONG
        # RIGHT: scores = torch.matmul(q, k.transpose(1, 2)) / D**0.5
        return torch.matmul(scores.softmax(dim=-1), v)  # SHOWS

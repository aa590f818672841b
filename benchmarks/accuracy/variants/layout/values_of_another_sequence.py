"""The values come from the queries' sequence: the sum runs over two different lengths.

Atlas: value-uses-key-proj
"""

import torch
from torch import nn

DIMS, B, T, S, D = "x: B T D, memory: B S D", 5, 11, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x, memory):
        weights = torch.softmax(self.q(x) @ self.k(memory).mT / D**0.5, dim=-1)
        v = self.v(x)  # WRONG
        # RIGHT: v = self.v(memory)
        return weights @ v  # SHOWS

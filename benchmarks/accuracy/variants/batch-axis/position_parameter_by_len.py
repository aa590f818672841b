"""len(x) is the batch: the learned table (positions, 1, D) is laid along it.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.position = nn.Parameter(torch.randn(64, D))
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        table = self.position[: len(x)].unsqueeze(1)  # WRONG
        # RIGHT: table = self.position[: x.shape[1]].unsqueeze(0)
        return self.drop(x + table)  # SHOWS

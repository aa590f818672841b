"""Sequence-first pooling weights normalised over the batch.

Atlas: softmax-batch-axis
"""

import torch
from torch import nn

DIMS, B, S, D = "x: S B D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Linear(D, 1)

    def forward(self, x):
        w = torch.softmax(self.s(x), dim=1)  # WRONG
        # RIGHT: w = torch.softmax(self.s(x), dim=0)
        return (w * x).sum(0)  # SHOWS

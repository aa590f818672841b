"""Pooling weights normalised over the batch.

Atlas: softmax-batch-axis
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(D, 1)
        self.softmax = nn.Softmax(dim=0)  # WRONG
        # RIGHT: self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        weights = self.softmax(self.score(torch.tanh(x)).squeeze(-1))  # SHOWS
        return torch.bmm(weights.unsqueeze(1), x).squeeze(1)  # SHOWS

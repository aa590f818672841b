"""Tokens viewed as (B, D, S) for a convolution along the sequence.

Atlas: view-used-as-transpose-sb
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.local = nn.Conv1d(D, D, 3, padding=1)
        self.out = nn.Linear(D, D)

    def forward(self, x):
        y = x.view(x.size(0), x.size(2), x.size(1))  # WRONG
        # RIGHT: y = x.transpose(1, 2)
        y = torch.relu(self.local(y))
        return x + self.out(y.transpose(1, 2))

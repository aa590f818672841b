"""A root mean square over dim 0.

Atlas: softmax-batch-axis
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.proj = nn.Parameter(torch.ones(D)), nn.Linear(D, D)

    def forward(self, x):
        power = x.pow(2).mean(0)  # WRONG
        # RIGHT: power = x.pow(2).mean(-1, keepdim=True)
        return self.proj(x * torch.rsqrt(power + 1e-6) * self.weight)  # SHOWS

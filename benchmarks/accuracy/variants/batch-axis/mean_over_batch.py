"""A token's mean taken over the batch and subtracted from every sample.

Atlas: softmax-batch-axis
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(D)), nn.Parameter(torch.zeros(D))

    def forward(self, x):
        mean = x.mean(dim=0, keepdim=True)  # WRONG
        # RIGHT: mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return (x - mean) / torch.sqrt(var + 1e-5) * self.scale + self.shift  # SHOWS

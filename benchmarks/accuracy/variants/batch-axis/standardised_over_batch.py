"""Mean and deviation of a norm taken over the batch.

Atlas: softmax-batch-axis
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Parameter(torch.ones(D))

    def forward(self, x):
        std, mean = torch.std_mean(x, dim=0)  # WRONG
        # RIGHT: std, mean = torch.std_mean(x, dim=-1, keepdim=True)
        return (x - mean) / (std + 1e-6) * self.g  # SHOWS

"""The sequence-first table pe[:x.size(0)] with batch-first data: a position for each sample.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        angle = torch.arange(64)[:, None] * 10000 ** (-torch.arange(0, D, 2) / D)
        pe = torch.zeros(64, 1, D)
        pe[:, 0, 0::2], pe[:, 0, 1::2] = angle.sin(), angle.cos()
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[: x.size(0)]  # WRONG
        # RIGHT: x = x + self.pe[: x.size(1)].transpose(0, 1)
        return x * 0.5

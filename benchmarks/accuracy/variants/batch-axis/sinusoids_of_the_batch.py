"""A sinusoidal table as long as the batch, laid along it.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        w = 10000 ** (-torch.arange(0, D, 2) / D)
        self.register_buffer("w", w)

    def forward(self, x):
        t = torch.arange(x.shape[0], dtype=torch.float32)  # WRONG
        # RIGHT: t = torch.arange(x.shape[1], dtype=torch.float32)
        a = torch.outer(t, self.w)
        pe = torch.cat([a.sin(), a.cos()], -1)
        pe = pe[:, None]  # WRONG
        # RIGHT: pe = pe[None]
        return x + pe  # SHOWS

"""Sequence-first data, and a (1, positions, D) table cut to the batch.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, D = "x: S B D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.pos_embed = nn.Parameter(torch.randn(1, 64, D) * 0.02)

    def forward(self, x):
        return x + self.pos_embed[:, : x.size(1)]  # WRONG
        # RIGHT: return x + self.pos_embed[:, : x.size(0)].transpose(0, 1)

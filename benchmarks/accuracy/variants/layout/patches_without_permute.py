"""Patches cut by unfold, flattened while the grid still lies between channels and pixels.

Atlas: attn-aug-reshape
"""

from torch import nn

DIMS, B, C, h, w = "x: B C h w", 5, 3, 14, 28
P, D = 7, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(C * P * P, D)

    def forward(self, x):
        patches = x.unfold(2, P, P).unfold(3, P, P)
        patches = patches.reshape(x.size(0), -1, C * P * P)  # WRONG
        # RIGHT: patches = patches.permute(0, 2, 3, 1, 4, 5).reshape(x.size(0), -1, C * P * P)
        return self.embed(patches)

"""Queries normalised over the batch: F.normalize with dim=0.

Atlas: softmax-batch-axis
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, H, -1)).permute(2, 0, 3, 1, 4)
        q = F.normalize(q, dim=0)  # WRONG
        # RIGHT: q = F.normalize(q, dim=-1)
        k = F.normalize(k, dim=-1)
        y = (q @ k.mT * 10).softmax(-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))

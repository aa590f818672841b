"""Heads split off and joined along the batch, then viewed back as (B, H, ...).

Atlas: merge-head-batch-swapped
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        q = torch.cat(self.q(x).chunk(H, dim=2), dim=0)
        k = torch.cat(self.k(x).chunk(H, dim=2), dim=0)
        v = torch.cat(self.v(x).chunk(H, dim=2), dim=0)
        y = torch.softmax(q @ k.transpose(1, 2) / (D // H) ** 0.5, dim=-1) @ v
        y = y.view(x.size(0), H, x.size(1), -1).transpose(1, 2).flatten(2)  # WRONG
        # RIGHT: y = torch.cat(y.chunk(H, dim=0), dim=2)
        return self.out(y)

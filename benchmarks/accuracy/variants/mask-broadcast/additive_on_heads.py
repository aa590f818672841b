"""An additive (B, 1, S) bias is added to (B, H, S, S) scores: the batch meets the heads.

Atlas: mask-batch-head-coincidence
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D, keep: B S bool", 4, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, keep):
        q, k, v = (p(x).view(*x.shape[:2], H, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        bias = (1.0 - keep.float()).unsqueeze(1) * -1e4
        scores = torch.matmul(q, k.mT) + bias  # WRONG
        # RIGHT: scores = torch.matmul(q, k.mT) + bias.unsqueeze(1)
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))

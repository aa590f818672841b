"""A relative bias (S, S, H) is added to (B, H, S, S) scores without a permute; it runs as H = S.

Atlas: mask-batch-head-coincidence
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 6, 6, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.table = nn.Embedding(63, H)

    def forward(self, x):
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, H, -1).permute(2, 0, 3, 1, 4)
        distance = torch.arange(S)[None, :] - torch.arange(S)[:, None] + 31
        bias = self.table(distance)
        scores = q @ k.mT / 2 + bias  # WRONG
        # RIGHT: scores = q @ k.mT / 2 + bias.permute(2, 0, 1)
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(B, S, D))

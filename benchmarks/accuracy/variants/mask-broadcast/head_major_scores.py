"""Heads are flattened in front of the batch, the mask is repeated batch first.

Atlas: mask-headmajor-batchmajor
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D, mask: B S S bool", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, mask):
        B, S, D = x.shape
        q, k, v = (
            p(x).view(B, S, H, -1).permute(2, 0, 1, 3).reshape(H * B, S, -1)
            for p in (self.q, self.k, self.v)
        )
        mask = mask.repeat_interleave(H, dim=0)  # WRONG
        # RIGHT: mask = mask.repeat(H, 1, 1)
        scores = torch.bmm(q, k.transpose(1, 2)).masked_fill(mask, -1e9)  # SHOWS
        y = torch.bmm(scores.softmax(2), v).view(H, B, S, -1).permute(1, 2, 0, 3)
        return self.out(y.reshape(B, S, D))

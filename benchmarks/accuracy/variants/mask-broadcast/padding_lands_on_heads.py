"""A (B, S) padding mask gets its new axes in front: its batch lies on the heads.

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
        q, k, v = (p(x).unflatten(-1, (H, -1)).transpose(1, 2) for p in (self.q, self.k, self.v))
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k)
        scores = scores.masked_fill(~keep[None, :, None, :], -1e9)  # WRONG
        # RIGHT: scores = scores.masked_fill(~keep[:, None, None, :], -1e9)
        y = torch.einsum("bhqk,bhkd->bqhd", scores.softmax(-1), v)
        return self.out(y.flatten(2))

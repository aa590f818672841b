"""One slope per head laid along the batch; it runs because B = H.

Atlas: mask-batch-head-coincidence
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 4, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.register_buffer("slopes", 2.0 ** (-8 * torch.arange(1, H + 1) / H))

    def forward(self, x):
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, H, -1).permute(2, 0, 3, 1, 4)
        distance = (torch.arange(S)[None, :] - torch.arange(S)[:, None]).abs()
        bias = -self.slopes[:, None, None, None] * distance  # WRONG
        # RIGHT: bias = -self.slopes[:, None, None] * distance
        y = (q @ k.mT / 6**0.5 + bias).softmax(-1) @ v  # SHOWS
        return self.out(y.transpose(1, 2).reshape(B, S, D))

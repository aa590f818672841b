"""A padding mask unsqueezed onto the query axis: whole rows are shifted, no key is hidden.

Atlas: mask-batch-head-coincidence
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D, pad: B S bool", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, pad):
        q, k, v = (p(x).view(*x.shape[:2], H, -1).transpose(1, 2) for p in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) / 6**0.5
        scores = scores.masked_fill(pad[:, None, :, None], -1e4)  # WRONG
        # RIGHT: scores = scores.masked_fill(pad[:, None, None, :], -1e4)
        y = torch.softmax(scores, -1) @ v  # SHOWS
        return self.out(y.transpose(1, 2).flatten(2))

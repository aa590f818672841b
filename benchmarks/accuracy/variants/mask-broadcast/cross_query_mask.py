"""The queries' padding mask hides keys of the memory; it runs because the lengths are equal.

Atlas: cross-uses-query-mask
"""

import torch
from torch import nn

DIMS = "x: B T D, memory: B S D, x_pad: B T bool, memory_pad: B S bool"
B, T, S, H, D = 5, 11, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(D, D), nn.Linear(D, 2 * D), nn.Linear(D, D)

    def forward(self, x, memory, x_pad, memory_pad):
        q = self.q(x).unflatten(-1, (H, -1)).transpose(1, 2)
        k, v = self.kv(memory).unflatten(-1, (2, H, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / 6**0.5
        scores = scores.masked_fill(x_pad[:, None, None, :], -1e4)  # WRONG
        # RIGHT: scores = scores.masked_fill(memory_pad[:, None, None, :], -1e4)
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).flatten(2))

"""Heads split by a view straight to (B, H, S, hd).

Atlas: split-view-no-transpose
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def heads(self, t):
        return t.view(t.shape[0], H, t.shape[1], D // H)  # WRONG
        # RIGHT: return t.view(t.shape[0], t.shape[1], H, D // H).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        weights = torch.softmax(q @ k.transpose(-1, -2) / (D // H) ** 0.5, dim=-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))

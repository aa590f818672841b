"""einsum leaves heads before queries, and the reshape takes them for features.

Atlas: merge-no-transpose
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(D, D, bias=False)
        self.k = nn.Linear(D, D, bias=False)
        self.v = nn.Linear(D, D, bias=False)
        self.out = nn.Linear(D, D)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (p(x).reshape(b, n, H, -1) for p in (self.q, self.k, self.v))
        a = torch.einsum("bihd,bjhd->bhij", q, k).mul((D // H) ** -0.5).softmax(dim=-1)
        y = torch.einsum("bhij,bjhd->bhid", a, v)
        return self.out(y.reshape(b, n, -1))  # WRONG
        # RIGHT: return self.out(y.transpose(1, 2).reshape(b, n, -1))

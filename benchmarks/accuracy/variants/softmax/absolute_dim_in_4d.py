"""dim=2 is the key axis of (B, S, S), and the query axis of (B, H, S, S).

Atlas: softmax-dim2-4d
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))
        self.softmax = nn.Softmax(dim=2)  # WRONG
        # RIGHT: self.softmax = nn.Softmax(dim=3)

    def forward(self, x):
        q, k, v = (
            p(x).unflatten(2, (H, D // H)).permute(0, 2, 1, 3) for p in (self.q, self.k, self.v)
        )
        weights = self.softmax(q.matmul(k.permute(0, 1, 3, 2)) / 6**0.5)  # SHOWS
        y = weights.matmul(v)  # SHOWS
        return self.out(torch.flatten(y.transpose(1, 2), 2))

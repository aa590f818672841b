"""The outputs of the heads stacked in front of the positions and flattened.

Atlas: heads-view-h1-hidden
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        outs = []
        for q, k, v in zip(self.q(x).split(6, -1), self.k(x).split(6, -1), self.v(x).split(6, -1)):
            outs.append(torch.softmax(q @ k.transpose(1, 2) / 6**0.5, -1) @ v)
        y = torch.stack(outs, 1).reshape(B, S, D)  # WRONG
        # RIGHT: y = torch.stack(outs, 2).reshape(B, S, D)
        return self.o(y)

"""The outputs of the heads stacked in front, and viewed as features with no permute.

Atlas: heads-view-h1-hidden
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.ModuleList([nn.Linear(D, D // H) for _ in range(H)])
        self.k = nn.ModuleList([nn.Linear(D, D // H) for _ in range(H)])
        self.v = nn.ModuleList([nn.Linear(D, D // H) for _ in range(H)])
        self.out = nn.Linear(D, D)

    def forward(self, x):
        heads = []
        for q, k, v in zip(self.q, self.k, self.v):
            scores = torch.bmm(q(x), k(x).transpose(1, 2)) / (D // H) ** 0.5
            heads.append(torch.bmm(torch.softmax(scores, -1), v(x)))
        heads = torch.stack(heads)
        y = heads.view(x.size(0), x.size(1), -1)  # WRONG
        # RIGHT: y = heads.permute(1, 2, 0, 3).reshape(x.size(0), x.size(1), -1)
        return self.out(y)

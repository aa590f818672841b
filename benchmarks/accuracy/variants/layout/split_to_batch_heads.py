"""A projection viewed as (B*H, S, hd) before its features were split.

Atlas: split-view-no-transpose
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear_k = nn.Linear(D, D, bias=False)
        self.linear_v = nn.Linear(D, D, bias=False)
        self.linear_q = nn.Linear(D, D, bias=False)
        self.final = nn.Linear(D, D)

    def forward(self, x):
        n, hd = x.size(0), D // H
        k = self.linear_k(x).view(n, -1, H, hd).transpose(1, 2).reshape(n * H, -1, hd)
        v = self.linear_v(x).view(n, -1, H, hd).transpose(1, 2).reshape(n * H, -1, hd)
        q = self.linear_q(x).view(n * H, -1, hd)  # WRONG
        # RIGHT: q = self.linear_q(x).view(n, -1, H, hd).transpose(1, 2).reshape(n * H, -1, hd)
        weights = torch.bmm(q, k.transpose(1, 2)).div(hd**0.5).softmax(-1)
        context = torch.bmm(weights, v).view(n, H, -1, hd).transpose(1, 2)
        return self.final(context.reshape(n, -1, D))

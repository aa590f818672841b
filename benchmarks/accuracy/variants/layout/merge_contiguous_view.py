"""Context of separate projections made contiguous and viewed as tokens, heads still before them.

Atlas: dp-mha-batch-first-merge
"""

import math

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_q, self.w_k = nn.Linear(D, D), nn.Linear(D, D)
        self.w_v, self.w_o = nn.Linear(D, D), nn.Linear(D, D)

    def split(self, t):
        return t.view(t.size(0), -1, H, D // H).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.w_q(x)), self.split(self.w_k(x)), self.split(self.w_v(x))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(D // H)
        context = torch.matmul(torch.softmax(scores, dim=-1), v)
        context = context.contiguous().view(x.size(0), -1, D)  # WRONG
        # RIGHT: context = context.transpose(1, 2).contiguous().view(x.size(0), -1, D)
        return self.w_o(context)

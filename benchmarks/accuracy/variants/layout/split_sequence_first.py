"""Sequence-first queries viewed as (B*H, S, hd): the transpose that must follow is in the view.

Atlas: split-view-no-transpose
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: S B D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        S, B, D = x.shape
        q, k, v = self.in_proj(x).chunk(3, dim=-1)
        q = q.reshape(B * H, S, D // H)  # WRONG
        # RIGHT: q = q.reshape(S, B * H, D // H).transpose(0, 1)
        k = k.reshape(S, B * H, D // H).transpose(0, 1)
        v = v.reshape(S, B * H, D // H).transpose(0, 1)
        y = torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(dim=-1), v)
        return self.out_proj(y.transpose(0, 1).reshape(S, B, D))

"""The mask expanded as (H, B, S, S) and flattened, the scores flattened as (B, H).

Atlas: mask-repeat-order
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D, mask: B S S", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x, mask):
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, H, -1).permute(2, 0, 3, 1, 4).flatten(1, 2)
        bias = mask.expand(H, B, S, S).reshape(B * H, S, S)  # WRONG
        # RIGHT: bias = mask[:, None].expand(B, H, S, S).reshape(B * H, S, S)
        scores = torch.baddbmm(bias, q, k.transpose(1, 2))  # SHOWS
        y = scores.softmax(dim=-1) @ v
        return self.out(y.view(B, H, S, -1).transpose(1, 2).reshape(B, S, D))

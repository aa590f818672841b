"""A (B, S, S) mask tiled H times for (B*H, S, S) scores: heads get other samples' masks.

Atlas: mask-repeat-order
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D, mask: B S S bool", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, mask):
        B, S, D = x.shape
        q, k, v = (
            p(x).view(B, S, H, -1).transpose(1, 2).reshape(B * H, S, -1)
            for p in (self.q, self.k, self.v)
        )
        mask = mask.repeat(H, 1, 1)  # WRONG
        # RIGHT: mask = mask.repeat_interleave(H, 0)
        scores = torch.bmm(q, k.mT).masked_fill(mask, -1e9)  # SHOWS
        y = torch.bmm(torch.softmax(scores, -1), v)
        return self.out(y.view(B, H, S, -1).transpose(1, 2).reshape(B, S, D))

"""The shape is unpacked as S, B, D: heads attend over the batch.

Atlas: batch-first-default
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.in_proj, self.out_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        x = x.contiguous()  # WRONG
        # RIGHT: x = x.transpose(0, 1).contiguous()
        S, B, D = x.shape
        q, k, v = (
            t.reshape(S, B * H, D // H).transpose(0, 1) for t in self.in_proj(x).chunk(3, dim=-1)
        )
        scores = torch.bmm(q, k.transpose(1, 2))  # SHOWS
        y = torch.bmm(scores.softmax(-1), v)  # SHOWS
        return self.out_proj(y.transpose(0, 1).reshape(S, B, D))

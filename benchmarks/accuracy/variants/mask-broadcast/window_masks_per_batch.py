"""Window masks repeated sample by sample for scores whose first axis is (B, windows).

Atlas: swin-mask-batch-gt-1
"""

import torch
from torch import nn

DIMS, B, N, M, H, D = "x: B N M D, mask: N M M bool", 5, 3, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x, mask):
        B, N, M, D = x.shape
        q, k, v = self.qkv(x.view(B * N, M, D)).view(B * N, M, 3, H, -1).permute(2, 0, 3, 1, 4)
        mask = mask.repeat_interleave(B, 0)  # WRONG
        # RIGHT: mask = mask.repeat(B, 1, 1)
        scores = (q @ k.mT).masked_fill(mask.unsqueeze(1), -1e9)  # SHOWS
        y = (torch.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B * N, M, D)
        return self.out(y.view(B, N, M, D))

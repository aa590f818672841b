"""An additive padding mask made (B, 1, S, 1): softmax does not see what is constant along keys.

Atlas: mask-batch-head-coincidence
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, D = "x: B S D, keep: B S bool", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x, keep):
        q, k, v = self.qkv(x).unflatten(-1, (3, H, -1)).permute(2, 0, 3, 1, 4)
        bias = (1 - keep.float()).unsqueeze(1).unsqueeze(-1) * -1e4  # WRONG
        # RIGHT: bias = (1 - keep.float()).unsqueeze(1).unsqueeze(1) * -1e4
        scores = q @ k.mT / 6**0.5 + bias  # SHOWS
        y = F.softmax(scores, dim=-1) @ v  # SHOWS
        return self.out(y.transpose(1, 2).flatten(2))

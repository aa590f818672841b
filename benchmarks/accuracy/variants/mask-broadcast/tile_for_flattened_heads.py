"""torch.tile lays the batch down H times, the heads are flattened batch first.

Atlas: mask-repeat-order
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D, pad: B S bool", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, pad):
        q, k, v = (p(x).view(B, S, H, 6).transpose(1, 2).flatten(0, 1) for p in (self.q, self.k, self.v))
        m = torch.tile(pad, (H, 1)).unsqueeze(1)  # WRONG
        # RIGHT: m = pad.unsqueeze(1).expand(B, H, S).reshape(B * H, 1, S)
        w = (q @ k.mT / 6**0.5).masked_fill(m, -1e9).softmax(-1)  # SHOWS
        return self.o((w @ v).unflatten(0, (B, H)).transpose(1, 2).flatten(2))

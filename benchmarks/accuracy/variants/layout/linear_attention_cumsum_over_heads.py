"""The running sum of keys taken over heads, not over positions.

Atlas: linear-cumsum-axis
"""

import torch
import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, H, D // H).unbind(2)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        kv = torch.einsum("bshd,bshe->bshde", k, v).cumsum(1)
        norm = 1 / torch.einsum("bshd,bshd->bsh", q, k.cumsum(-2))  # WRONG
        # RIGHT: norm = 1 / torch.einsum("bshd,bshd->bsh", q, k.cumsum(1))
        y = torch.einsum("bshd,bshde,bsh->bshe", q, kv, norm)
        return self.out(y.flatten(2))

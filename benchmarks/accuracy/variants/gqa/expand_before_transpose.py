"""Values expanded in (B, S, Hkv, group, hd) and reshaped to (B, H, S, hd) at once.

Atlas: gqa-repeat-seq-axis
"""

import torch
from torch import nn

DIMS, B, S, H, G, D = "x: B S D", 5, 11, 6, 2, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(D, D), nn.Linear(D, 2 * D // 3), nn.Linear(D, D)

    def forward(self, x):
        B, S, D = x.shape
        q = self.q(x).view(B, S, H, 8).transpose(1, 2)
        k, v = (
            t.view(B, S, G, 1, 8).expand(B, S, G, H // G, 8) for t in self.kv(x).chunk(2, -1)
        )
        k = k.reshape(B, S, H, 8).transpose(1, 2)
        v = v.reshape(B, H, S, 8)  # WRONG
        # RIGHT: v = v.reshape(B, S, H, 8).transpose(1, 2)
        y = torch.softmax(q @ k.mT / 8**0.5, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(B, S, D))

"""Queries (B, S, H, hd) reshaped to (B*Hkv, group*S, hd) with the sequence still in front.

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
        q = self.q(x).view(B, S, H, 8)
        q = q.reshape(B * G, -1, 8)  # WRONG
        # RIGHT: q = q.transpose(1, 2).reshape(B * G, -1, 8)
        k, v = self.kv(x).view(B, S, 2, G, 8).permute(2, 0, 3, 1, 4).flatten(1, 2)
        y = torch.bmm(torch.bmm(q, k.mT).softmax(-1), v)
        return self.out(y.view(B, H, S, 8).transpose(1, 2).reshape(B, S, D))

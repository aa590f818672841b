"""Keys expanded as (group, Hkv), values as (Hkv, group).

Atlas: gqa-tile-order
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
        q = self.q(x).view(B, S, H, -1).transpose(1, 2)
        k, v = self.kv(x).view(B, S, 2, G, -1).permute(2, 0, 3, 1, 4)
        k = k[:, None].expand(B, H // G, G, S, -1).reshape(B, H, S, -1)  # WRONG
        # RIGHT: k = k[:, :, None].expand(B, G, H // G, S, -1).reshape(B, H, S, -1)
        v = v[:, :, None].expand(B, G, H // G, S, -1).reshape(B, H, S, -1)
        weights = torch.softmax(q @ k.transpose(2, 3) / 8**0.5, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(B, S, D))  # SHOWS

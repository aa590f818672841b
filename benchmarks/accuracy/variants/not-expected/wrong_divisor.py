"""The key head of a query head found with the number of key heads, not the size of a group.

Atlas: gqa-wrong-divisor
Why not: the mistake is in the values of an index, not in its axes.
"""

import torch
import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, G, D = "x: B S D", 5, 11, 8, 4, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        q = self.q(x).unflatten(-1, (H, -1)).transpose(1, 2)
        k, v = self.kv(x).unflatten(-1, (2, G, -1)).permute(2, 0, 3, 1, 4)
        which = torch.arange(H) // G  # WRONG
        # RIGHT: which = torch.arange(H) // (H // G)
        y = F.scaled_dot_product_attention(q, k[:, which], v[:, which])
        return self.out(y.transpose(1, 2).flatten(2))

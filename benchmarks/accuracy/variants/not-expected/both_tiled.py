"""Keys and values are tiled where pretrained weights expect them repeated.

Atlas: gqa-tile-order
Why not: which query head belongs to which key head is a convention of the weights.
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, G, D = "x: B S D", 5, 11, 6, 2, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(D, D), nn.Linear(D, 2 * D // 3), nn.Linear(D, D)

    def forward(self, x):
        q = self.q(x).unflatten(-1, (H, -1)).transpose(1, 2)
        kv = self.kv(x).unflatten(-1, (2, G, -1)).permute(2, 0, 3, 1, 4)
        k, v = kv.repeat(1, 1, H // G, 1, 1)  # WRONG
        # RIGHT: k, v = kv.repeat_interleave(H // G, dim=2)
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))

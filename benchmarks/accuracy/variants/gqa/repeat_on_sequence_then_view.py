"""Keys (B, S, Hkv, hd) repeated along the sequence and viewed as heads.

Atlas: gqa-repeat-seq-axis
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, G, D = "x: B S D", 5, 11, 6, 2, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.out = nn.Linear(D, D), nn.Linear(D, D)
        self.k, self.v = nn.Linear(D, D // 3), nn.Linear(D, D // 3)

    def forward(self, x):
        B, S, D = x.shape
        q = self.q(x).view(B, S, H, -1)
        k = self.k(x).view(B, S, G, -1).repeat(1, H // G, 1, 1).view(B, S, H, -1)  # WRONG
        # RIGHT: k = self.k(x).view(B, S, G, -1).repeat_interleave(H // G, 2).view(B, S, H, -1)
        v = self.v(x).view(B, S, G, -1).repeat_interleave(H // G, 2)
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)))
        return self.out(y.transpose(1, 2).reshape(B, S, D))

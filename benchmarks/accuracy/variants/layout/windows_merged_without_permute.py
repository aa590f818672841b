"""Windows put back into a feature map without exchanging windows and rows.

Atlas: attn-aug-reshape
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, h, w, C = "x: B h w C", 5, 14, 21, 24
M = 7


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)

    def forward(self, x):
        B, h, w, C = x.shape
        y = x.view(B, h // M, M, w // M, M, C).permute(0, 1, 3, 2, 4, 5)
        q, k, v = self.qkv(y.reshape(-1, M * M, C)).chunk(3, dim=-1)
        y = self.out(F.scaled_dot_product_attention(q, k, v))
        y = y.view(B, h // M, w // M, M, M, C)
        return y.reshape(B, h, w, C)  # WRONG
        # RIGHT: return y.permute(0, 1, 3, 2, 4, 5).reshape(B, h, w, C)

"""Windows of a feature map viewed together before rows of windows and columns were exchanged.

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
        y = x.view(B, h // M, M, w // M, M, C)
        y = y.reshape(-1, M * M, C)  # WRONG
        # RIGHT: y = y.transpose(2, 3).reshape(-1, M * M, C)
        q, k, v = self.qkv(y).chunk(3, -1)
        y = self.out(F.scaled_dot_product_attention(q, k, v))
        y = y.view(B, h // M, w // M, M, M, C).transpose(2, 3)
        return y.reshape(B, h, w, C)

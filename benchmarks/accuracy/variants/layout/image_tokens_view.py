"""A feature map viewed as (B, h*w, C): channels and pixels are mixed.

Atlas: attn-aug-reshape
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, C, h, w = "x: B C h w", 5, 24, 7, 11


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)

    def forward(self, x):
        B, C, h, w = x.shape
        tokens = x.view(B, h * w, C)  # WRONG
        # RIGHT: tokens = x.flatten(2).transpose(1, 2)
        q, k, v = self.qkv(tokens).split(C, dim=-1)
        y = self.out(F.scaled_dot_product_attention(q, k, v))
        return x + y.transpose(1, 2).reshape(B, C, h, w)

"""A fused projection reshaped to (B, 3, S, H, hd), which is not how it lies in memory.

Atlas: split-view-no-transpose
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        B, S, D = x.shape
        qkv = self.c_attn(x).reshape(B, 3, S, H, D // H)  # WRONG
        # RIGHT: qkv = self.c_attn(x).reshape(B, S, 3, H, D // H).transpose(1, 2)
        q, k, v = (t.transpose(1, 2) for t in qkv.unbind(1))
        y = F.scaled_dot_product_attention(q, k, v)
        return self.c_proj(y.transpose(1, 2).reshape(B, S, D))

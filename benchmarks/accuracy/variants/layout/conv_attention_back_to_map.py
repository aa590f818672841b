"""(B, H, pixels, hd) reshaped to channels x pixels without moving the pixels last.

Atlas: attn-aug-reshape
"""

from torch import nn

DIMS, B, C, H, h, w = "x: B C h w", 5, 24, 4, 7, 11


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Conv2d(C, 3 * C, 1), nn.Conv2d(C, C, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(x).reshape(b, 3, H, c // H, h * w).unbind(1)
        a = (q.transpose(-2, -1) @ k * (c // H) ** -0.5).softmax(-1)
        y = a @ v.transpose(-2, -1)
        return self.proj(y.reshape(b, c, h, w))  # WRONG
        # RIGHT: return self.proj(y.transpose(-2, -1).reshape(b, c, h, w))

"""Softmax over the heads: each key's weights sum to one over heads, not over keys.

Atlas: softmax-dim2-4d
"""

from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, H, D // H).permute(2, 0, 3, 1, 4)
        weights = (q @ k.mT / 6**0.5).softmax(1)  # WRONG
        # RIGHT: weights = (q @ k.mT / 6**0.5).softmax(3)
        y = weights @ v  # SHOWS
        return self.proj(y.transpose(1, 2).reshape(B, S, D))

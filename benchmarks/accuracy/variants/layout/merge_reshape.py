"""Heads merged by a reshape, without the transpose.

Atlas: merge-no-transpose
"""

from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        B, S, D = x.shape
        q, k, v = self.qkv(x).view(B, S, 3, H, D // H).permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q @ k.transpose(-2, -1) / (D // H) ** 0.5).softmax(-1)
        y = (weights @ v).reshape(B, S, D)  # WRONG
        # RIGHT: y = (weights @ v).transpose(1, 2).reshape(B, S, D)
        return self.out(y)

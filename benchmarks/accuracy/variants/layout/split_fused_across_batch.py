"""A fused projection viewed as (3, B, S, D): thirds of the batch instead of thirds of the features.

Atlas: split-view-no-transpose
"""

from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_qkv, self.to_out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        B, S, D = x.shape
        q, k, v = self.to_qkv(x).view(3, B, S, D)  # WRONG
        # RIGHT: q, k, v = self.to_qkv(x).view(B, S, 3, D).unbind(2)
        weights = (q @ k.transpose(1, 2) * D**-0.5).softmax(dim=2)
        return self.to_out(weights @ v)

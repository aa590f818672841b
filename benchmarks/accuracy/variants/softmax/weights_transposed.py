"""The weights are transposed before they meet the values, so the sum runs over the queries.

Atlas: softmax-query-axis
"""

from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (H, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) / 6**0.5).softmax(dim=-1)
        y = weights.transpose(-1, -2) @ v  # WRONG
        # RIGHT: y = weights @ v
        return self.out(y.transpose(1, 2).flatten(2))

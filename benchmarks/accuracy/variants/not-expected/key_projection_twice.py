"""The key projection is used for the values as well.

Atlas: value-uses-key-proj
Why not: both projections give the same axes; only which weight was used differs.
"""

from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        weights = (self.q(x) @ self.k(x).mT / D**0.5).softmax(-1)
        return weights @ self.k(x)  # WRONG
        # RIGHT: return weights @ self.v(x)

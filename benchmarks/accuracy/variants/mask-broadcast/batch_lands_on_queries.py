"""A (B, S) mask fills (B, S, S) scores without a query axis; it runs because B = S.

Atlas: mask-batch-head-coincidence
"""

from torch import nn

DIMS, B, S, D = "x: B S D, pad: B S bool", 11, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x, pad):
        scores = self.q(x) @ self.k(x).transpose(1, 2) / D**0.5
        scores = scores.masked_fill(pad, -1e9)  # WRONG
        # RIGHT: scores = scores.masked_fill(pad.unsqueeze(1), -1e9)
        return scores.softmax(-1) @ self.v(x)

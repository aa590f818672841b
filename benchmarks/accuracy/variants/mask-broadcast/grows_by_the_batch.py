"""A (B, 1, S, S) mask meets (B, S, S) scores: the result has the batch twice.

Atlas: mask-batch-head-coincidence
"""

from torch import nn

DIMS, B, S, D = "x: B S D, mask: B S S bool", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).mT / D**0.5
        scores = scores.masked_fill(mask.unsqueeze(1), -1e9)  # WRONG
        # RIGHT: scores = scores.masked_fill(mask, -1e9)
        return scores.softmax(-1) @ self.v(x)

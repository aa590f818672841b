"""(B, S, 1) scores meet a (B, S) mask: the result is (B, S, S), and B = S lets it pass.

Atlas: mask-batch-head-coincidence
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D, pad: B S bool", 11, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(D, 1)

    def forward(self, x, pad):
        scores = self.score(x).masked_fill(pad, -1e9)  # WRONG
        # RIGHT: scores = self.score(x).masked_fill(pad.unsqueeze(-1), -1e9)
        weights = torch.softmax(scores, dim=1)
        return (weights.mT @ x).mean(1)

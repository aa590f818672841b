"""squeeze() without a dimension drops the batch axis too when there is one sample.

Atlas: squeeze-drops-axis
"""

from torch import nn

DIMS, B, S, D = "x: B S D", 1, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score, self.out = nn.Linear(D, 1), nn.Linear(D, D)

    def forward(self, x):
        scores = self.score(x).squeeze()  # WRONG
        # RIGHT: scores = self.score(x).squeeze(-1)
        weights = scores.softmax(dim=-1)
        return self.out((weights.unsqueeze(-1) * x).sum(dim=-2))

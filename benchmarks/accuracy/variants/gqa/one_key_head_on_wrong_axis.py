"""One key head for all, unsqueezed in front of the batch: samples become heads, as B = H.

Atlas: gqa-repeat-seq-axis
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 6, 11, 6, 48


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(D, D), nn.Linear(D, 16), nn.Linear(D, D)

    def forward(self, x):
        q = self.q(x).unflatten(-1, (H, -1)).transpose(1, 2)
        k, v = self.kv(x).chunk(2, dim=-1)
        scores = torch.matmul(q, k.mT.unsqueeze(0))  # WRONG
        # RIGHT: scores = torch.matmul(q, k.mT.unsqueeze(1))
        y = (scores / 8**0.5).softmax(-1) @ v.unsqueeze(1)
        return self.out(y.transpose(1, 2).flatten(2))

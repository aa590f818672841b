"""The running sum of a linear attention runs over samples.

Atlas: linear-cumsum-axis
"""

import torch
import torch.nn.functional as F
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(D, D) for _ in range(3))

    def forward(self, x):
        q, k, v = F.relu(self.q(x)), F.relu(self.k(x)), self.v(x)
        state = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), dim=0)  # WRONG
        # RIGHT: state = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), dim=1)
        return torch.einsum("bsd,bsde->bse", q, state)

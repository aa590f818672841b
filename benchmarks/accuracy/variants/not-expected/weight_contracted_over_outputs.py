"""A weight stored as (out, in) is contracted over its outputs; it is square.

Atlas: weight-einsum-transposed
Why not: a parameter's axes have no names of their own, and either can be the one that fits.
"""

import torch
from torch import nn

DIMS, B, S, D = "x: B S D", 5, 11, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(D, D) / D)

    def forward(self, x):
        return torch.einsum("bsd,de->bse", x, self.weight)  # WRONG
        # RIGHT: return torch.einsum("bsd,ed->bse", x, self.weight)

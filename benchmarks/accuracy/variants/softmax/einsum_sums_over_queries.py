"""einsum sums the values over the letter of the queries.

Atlas: softmax-query-axis
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        n, t, _ = x.shape
        q, k, v = (p(x).view(n, t, H, D // H) for p in (self.q, self.k, self.v))
        energy = torch.einsum("nqhd,nkhd->nhqk", [q, k])
        attention = torch.softmax(energy / 6**0.5, dim=3)
        out = torch.einsum("nhql,nqhd->nlhd", [attention, v])  # WRONG
        # RIGHT: out = torch.einsum("nhql,nlhd->nqhd", [attention, v])
        return self.out(out.reshape(n, t, D))

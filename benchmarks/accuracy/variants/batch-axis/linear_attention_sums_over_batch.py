"""The state of linear attention is summed over samples too.

Atlas: linear-cumsum-axis
"""

import torch
import torch.nn.functional as F
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, H, -1)).permute(2, 0, 3, 1, 4)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        state = torch.einsum("bhsd,bhse->hde", k, v)  # WRONG
        # RIGHT: state = torch.einsum("bhsd,bhse->bhde", k, v)
        norm = torch.einsum("bhsd,bhd->bhs", q, k.sum(2))
        y = torch.matmul(q, state) / norm.unsqueeze(-1)
        return self.out(y.transpose(1, 2).flatten(2))

"""Cross attention: the context has the queries' length, and its heads are merged without a transpose.

Atlas: merge-no-transpose
"""

import torch
from torch import nn

DIMS, B, T, S, H, D = "x: B T D, memory: B S D", 5, 7, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(D, D), nn.Linear(D, 2 * D), nn.Linear(D, D)

    def forward(self, x, memory):
        (B, T, _), S = x.shape, memory.shape[1]
        q = self.q(x).view(B, T, H, -1).transpose(1, 2)
        k, v = self.kv(memory).view(B, S, 2, H, -1).permute(2, 0, 3, 1, 4)
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) / (D // H) ** 0.5
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.reshape(B, T, D))  # WRONG
        # RIGHT: return self.out(y.transpose(1, 2).reshape(B, T, D))

"""(B*H, S, hd) unflattened as (H, B, S, hd): samples and heads swap.

Atlas: merge-head-batch-swapped
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.fc = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        B, S, _ = x.shape
        q, k, v = (
            p(x).view(B, S, H, -1).permute(0, 2, 1, 3).reshape(B * H, S, -1)
            for p in (self.q, self.k, self.v)
        )
        out = torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), dim=2), v)
        out = out.view(H, B, S, -1).permute(1, 2, 0, 3)  # WRONG
        # RIGHT: out = out.view(B, H, S, -1).permute(0, 2, 1, 3)
        return self.fc(out.reshape(B, S, D))

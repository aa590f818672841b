"""Cross attention: keys of the memory split by a view to (B, H, S, hd).

Atlas: split-view-no-transpose
"""

import torch.nn.functional as F
from torch import nn

DIMS, B, T, S, H, D = "x: B T D, memory: B S D", 5, 7, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, memory):
        B = x.size(0)
        q = self.q(x).reshape(B, -1, H, D // H).transpose(1, 2)
        k = self.k(memory).reshape(B, H, -1, D // H)  # WRONG
        # RIGHT: k = self.k(memory).reshape(B, -1, H, D // H).transpose(1, 2)
        v = self.v(memory).reshape(B, -1, H, D // H).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(-2))

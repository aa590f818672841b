"""Channels-first attention: (B, H, S, hd) reshaped to (B, D, S) with the positions in between.

Atlas: attn-aug-reshape
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B D S", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Conv1d(D, 3 * D, 1), nn.Conv1d(D, D, 1)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=1)
        q, k, v = (t.reshape(B, H, 6, S) for t in (q, k, v))
        w = torch.einsum("bhct,bhcs->bhts", q, k).softmax(-1)
        y = torch.einsum("bhts,bhcs->bhtc", w, v)
        return self.o(y.reshape(B, D, S))  # WRONG
        # RIGHT: return self.o(y.transpose(2, 3).reshape(B, D, S))

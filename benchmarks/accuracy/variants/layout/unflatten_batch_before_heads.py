"""Heads flattened in front of the batch, (H*B, S, hd), and unflattened as (B, H, S, hd).

Atlas: merge-head-batch-swapped
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: B S D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w_qs, self.w_ks = nn.Linear(D, D), nn.Linear(D, D)
        self.w_vs, self.fc = nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, x):
        sz_b, length, _ = x.size()
        q = self.w_qs(x).view(sz_b, length, H, D // H)
        k = self.w_ks(x).view(sz_b, length, H, D // H)
        v = self.w_vs(x).view(sz_b, length, H, D // H)
        q = q.permute(2, 0, 1, 3).contiguous().view(-1, length, D // H)
        k = k.permute(2, 0, 1, 3).contiguous().view(-1, length, D // H)
        v = v.permute(2, 0, 1, 3).contiguous().view(-1, length, D // H)
        attn = torch.bmm(q, k.transpose(1, 2)).softmax(dim=2)
        output = torch.bmm(attn, v)
        output = output.view(sz_b, H, length, D // H).permute(0, 2, 1, 3)  # WRONG
        # RIGHT: output = output.view(H, sz_b, length, D // H).permute(1, 2, 0, 3)
        return self.fc(output.contiguous().view(sz_b, length, -1))

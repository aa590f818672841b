"""(B*H, S, hd) viewed as (S, B, D) without the transpose back.

Atlas: merge-no-transpose
"""

import torch
from torch import nn

DIMS, B, S, H, D = "x: S B D", 5, 11, 4, 24


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x):
        tgt_len, bsz, embed_dim = x.shape
        q = self.q(x).contiguous().view(tgt_len, bsz * H, -1).transpose(0, 1)
        k = self.k(x).contiguous().view(tgt_len, bsz * H, -1).transpose(0, 1)
        v = self.v(x).contiguous().view(tgt_len, bsz * H, -1).transpose(0, 1)
        attn = torch.bmm(q, k.transpose(1, 2)).softmax(dim=-1)
        y = torch.bmm(attn, v)
        y = y.contiguous().view(tgt_len, bsz, embed_dim)  # WRONG
        # RIGHT: y = y.transpose(0, 1).contiguous().view(tgt_len, bsz, embed_dim)
        return self.out(y)

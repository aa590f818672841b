"""Picks columns of the products for one query after the other."""

import torch
from torch import nn


class RelativeAttention(nn.Module):
    def __init__(self, width, reach):
        super().__init__()
        self.reach = reach
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.out = nn.Linear(width, width)
        self.distance = nn.Embedding(2 * reach + 1, width)

    def forward(self, x, keep=None):
        b, s, d = x.shape
        q, k, v = self.query(x), self.key(x), self.value(x)
        products = torch.einsum("bsd,rd->bsr", q, self.distance.weight)
        places = torch.arange(s, device=x.device)
        mixed = []
        for i in range(s):
            row = (places - i).clamp(-self.reach, self.reach) + self.reach
            scores = torch.einsum("bd,bkd->bk", q[:, i], k) + products[:, i, row]
            if keep is not None:
                scores = torch.where(keep, scores, -torch.inf)
            mixed.append((scores / d**0.5).softmax(-1).unsqueeze(1) @ v)
        return self.out(torch.cat(mixed, 1))

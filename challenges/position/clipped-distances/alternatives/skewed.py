"""Lays the products out by every distance from -(S - 1) to S - 1, and skews them by a view."""

import torch
import torch.nn.functional as F
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
        every = torch.arange(1 - s, s, device=x.device).clamp(-self.reach, self.reach)
        table = self.distance(every + self.reach)  # (2 S - 1, D)
        wide = F.pad(q @ table.mT, (0, 1)).flatten(1)  # rows of 2 S
        skewed = wide[:, s - 1 : s - 1 + s * (2 * s - 1)].unflatten(1, (s, 2 * s - 1))[:, :, :s]
        scores = (q @ k.mT + skewed) * d**-0.5
        if keep is not None:
            scores = scores.masked_fill(keep[:, None].logical_not(), -torch.inf)
        return self.out(scores.softmax(-1) @ v)

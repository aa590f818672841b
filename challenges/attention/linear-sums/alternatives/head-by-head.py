"""One head after the other, with plain matrix products."""

import torch
from torch import nn
from torch.nn import functional as F


class LinearAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.merge = nn.Linear(width, width)

    def forward(self, x, keep=None):
        projected = (
            layer(x).chunk(self.heads, dim=-1) for layer in (self.query, self.key, self.value)
        )
        outputs = []
        for q, k, v in zip(*projected):
            q, k = F.relu(q) + 1, F.relu(k) + 1
            if keep is not None:
                k = torch.where(keep.unsqueeze(-1), k, torch.zeros_like(k))
            memory = torch.bmm(k.transpose(1, 2), v)
            total = torch.bmm(q, k.sum(1).unsqueeze(-1))
            outputs.append(torch.bmm(q, memory) / total)
        return self.merge(torch.cat(outputs, dim=-1))

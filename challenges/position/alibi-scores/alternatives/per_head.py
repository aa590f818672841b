"""One head after the other, from a row of distances that each query takes its window of."""

import torch
from torch import nn


class ALiBi(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        whole = 1
        while 2 * whole <= num_heads:
            whole *= 2
        self.slopes = [2 ** (-8 * h / whole) for h in range(1, whole + 1)]
        self.slopes += [2 ** (-4 * h / whole) for h in range(1, 2 * (num_heads - whole), 2)]

    def forward(self, scores):
        q, k = scores.size(-2), scores.size(-1)
        row = torch.arange(-k + 1, k, device=scores.device).abs()  # distance 0 in the middle
        first = k - q
        distance = torch.stack([row[k - 1 - p : 2 * k - 1 - p] for p in range(first, k)])
        heads = zip(self.slopes, scores.unbind(1), strict=True)
        return torch.stack([one - (m * distance).to(one.dtype) for m, one in heads], dim=1)

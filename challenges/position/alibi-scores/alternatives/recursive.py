"""Slopes by recursion, as in the released code, and no memory of earlier calls."""

import math

import torch
from torch import nn


def get_slopes(n):
    if math.log2(n).is_integer():
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]
    closest = 2 ** math.floor(math.log2(n))
    return get_slopes(closest) + get_slopes(2 * closest)[0::2][: n - closest]


class ALiBi(nn.Module):
    def __init__(self, num_heads):
        super().__init__()
        self.register_buffer("m", torch.tensor(get_slopes(num_heads)), persistent=False)

    def forward(self, scores):
        b, h, q, k = scores.shape
        i = torch.arange(q, device=scores.device)[:, None] + k - q
        j = torch.arange(k, device=scores.device)[None]
        penalty = torch.einsum("h,qk->hqk", self.m.float(), (i - j).abs().float())
        return (scores.float() - penalty).to(scores.dtype)

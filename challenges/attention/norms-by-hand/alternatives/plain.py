"""The formulas, and autograd for their gradients."""

import torch
from torch import nn


class QueryInput(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm_weight = nn.Parameter(torch.ones(dim))
        self.norm_bias = nn.Parameter(torch.zeros(dim))
        self.head_gain = nn.Parameter(torch.ones(dim // heads))

    def forward(self, x):
        z = x.to(torch.promote_types(x.dtype, torch.float32))
        var, mean = torch.var_mean(z, dim=-1, correction=0, keepdim=True)
        z = (z - mean) / torch.sqrt(var + 1e-5)
        z = (z * self.norm_weight + self.norm_bias).to(x.dtype).to(z.dtype)
        b, s, d = z.shape
        z = z.view(b, s, self.heads, d // self.heads)
        z = z / torch.sqrt(z.pow(2).mean(3, keepdim=True) + 1e-6) * self.head_gain
        return z.view(b, s, d).to(x.dtype)

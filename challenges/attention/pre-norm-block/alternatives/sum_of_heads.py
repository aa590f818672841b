"""Each head adds its own part of the output projection; the norm by its moments."""

import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class BlockConfig:
    dim: int
    num_heads: int
    expansion: int = 4
    eps: float = 1e-5


def normed(x, gain, eps):
    y = x.double() if x.dtype == torch.float64 else x.float()
    y = y - y.mean(dim=-1, keepdim=True)
    y = y * torch.rsqrt(y.square().mean(dim=-1, keepdim=True) + eps)
    return gain * y.type_as(x)


class Head(nn.Module):
    def __init__(self, dim, hd):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(dim, hd) for _ in "qkv")


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = nn.ModuleList([Head(dim, dim // heads) for _ in range(heads)])
        self.output = nn.Linear(dim, dim)

    def forward(self, x, hidden):
        total = self.output.bias
        parts = self.output.weight.chunk(len(self.heads), dim=1)
        for head, part in zip(self.heads, parts):
            q, k, v = head.query(x), head.key(x), head.value(x)
            s = torch.einsum("bic,bjc->bij", q, k) * (1 / math.sqrt(q.shape[-1]))
            if hidden is not None:
                s = torch.where(hidden, s.new_tensor(-math.inf), s)
            total = total + torch.softmax(s, 2) @ v @ part.T
        return total


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.cfg = config
        d, wide = config.dim, config.dim * config.expansion
        self.norm1 = nn.ParameterDict({"gain": torch.ones(d)})
        self.norm2 = nn.ParameterDict({"gain": torch.ones(d)})
        self.attention = Attention(d, config.num_heads)
        self.mlp = nn.Sequential(nn.Linear(d, wide), nn.GELU(), nn.Linear(wide, d))

    def forward(self, x, hidden=None):
        x = x + self.attention(normed(x, self.norm1["gain"], self.cfg.eps), hidden)
        return x + self.mlp(normed(x, self.norm2["gain"], self.cfg.eps))

"""The weights of all heads joined at each call, for one product and PyTorch's fused attention."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class BlockConfig:
    dim: int
    num_heads: int
    expansion: int = 4
    eps: float = 1e-5


class Norm(nn.LayerNorm):
    def __init__(self, config):
        super().__init__(config.dim, config.eps, elementwise_affine=False)
        self.gain = nn.Parameter(torch.ones(config.dim))

    def forward(self, x):
        return super().forward(x) * self.gain


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        names = ("query", "key", "value")
        self.heads = nn.ModuleList(
            nn.ModuleDict({name: nn.Linear(width, width // heads) for name in names})
            for _ in range(heads)
        )
        self.output = nn.Linear(width, width)

    def joined(self, y, name):
        layers = [head[name] for head in self.heads]
        weight = torch.cat([layer.weight for layer in layers])
        flat = F.linear(y, weight, torch.cat([layer.bias for layer in layers]))
        return flat.unflatten(-1, (len(layers), -1)).transpose(1, 2)

    def forward(self, y, seen):
        q, k, v = (self.joined(y, name) for name in ("query", "key", "value"))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.output(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        c = config.dim
        self.norm1, self.norm2 = Norm(config), Norm(config)
        self.attention = Attention(c, config.num_heads)
        wide = config.expansion * c
        self.mlp = nn.Sequential(nn.Linear(c, wide), nn.GELU(), nn.Linear(wide, c))

    def forward(self, x, hidden=None):
        seen = None if hidden is None else ~hidden.unsqueeze(1)
        x = x + self.attention(self.norm1(x), seen)
        return x + self.mlp(self.norm2(x))

"""One pre-norm block of an encoder, a module for each head, sizes from a config."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass
class BlockConfig:
    dim: int
    num_heads: int
    expansion: int = 4
    eps: float = 1e-5


class Norm(nn.Module):
    """Layer norm without a bias, computed in float32 at least."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(config.dim))
        self.eps = config.eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        centred = wide - wide.mean(-1, keepdim=True)
        variance = wide.var(-1, correction=0, keepdim=True)
        return (centred / (variance + self.eps).sqrt()).to(x.dtype) * self.gain


class Head(nn.Module):
    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.size = config.dim // config.num_heads
        self.query = nn.Linear(config.dim, self.size)
        self.key = nn.Linear(config.dim, self.size)
        self.value = nn.Linear(config.dim, self.size)

    def forward(self, x: Tensor, hidden: Tensor | None) -> Tensor:
        scores = self.query(x) @ self.key(x).mT / self.size**0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        return scores.softmax(dim=-1) @ self.value(x)


class Attention(nn.Module):
    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        self.heads = nn.ModuleList(Head(config) for _ in range(config.num_heads))
        self.output = nn.Linear(config.dim, config.dim)

    def forward(self, x: Tensor, hidden: Tensor | None) -> Tensor:
        found = [head(x, hidden) for head in self.heads]
        return self.output(torch.cat(found, dim=-1))


class Block(nn.Module):
    """`hidden`, (B, S, S), is True where a query (row) may not see a key (column)."""

    def __init__(self, config: BlockConfig) -> None:
        super().__init__()
        width = config.expansion * config.dim
        self.norm1, self.norm2 = Norm(config), Norm(config)
        self.attention = Attention(config)
        self.mlp = nn.Sequential(
            nn.Linear(config.dim, width), nn.GELU(), nn.Linear(width, config.dim)
        )

    def forward(self, x: Tensor, hidden: Tensor | None = None) -> Tensor:
        middle = x + self.attention(self.norm1(x), hidden)
        return middle + self.mlp(self.norm2(middle))

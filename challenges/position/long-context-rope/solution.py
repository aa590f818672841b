"""Rotary positions for a context that is `factor` times longer than that of the pretraining."""

import math
from functools import lru_cache

import torch


@lru_cache
def plain_frequencies(dim: int, base: float) -> torch.Tensor:
    """Radians per position, fastest pair first: (dim / 2,)."""
    return base ** (-torch.arange(0, dim, 2) / dim)


def stretched_frequencies(dim: int, base: float, factor: float, trained: int) -> torch.Tensor:
    """Fast pairs stay; those that never turned once in training slow down; between, a ramp."""
    w = plain_frequencies(dim, base).clone()
    turns = trained * w / (2 * math.pi)
    keep = ((turns - 1) / 3).clamp(0, 1)
    w *= keep + (1 - keep) / factor
    return w


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


class LongRotary(torch.nn.Module):
    """Turns queries or keys, (B, H, S, head_dim); keeps the table of the last call."""

    def __init__(self, head_dim: int, factor: float, trained: int, base: float):
        super().__init__()
        self.head_dim, self.factor, self.trained, self.base = head_dim, factor, trained, base
        self.made_for: tuple[object, ...] = ()
        self.cos = self.sin = torch.empty(0)

    def set_table(self, length: int, dtype: torch.dtype, device: torch.device) -> None:
        w = stretched_frequencies(self.head_dim, self.base, self.factor, self.trained)
        positions = torch.arange(length, dtype=torch.float32)
        angles = torch.outer(positions, w)
        angles = torch.cat((angles, angles), dim=-1)
        self.cos = angles.cos().to(device, dtype)
        self.sin = angles.sin().to(device, dtype)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wanted = (x.size(-2), x.dtype, x.device)
        if wanted != self.made_for:
            self.set_table(*wanted)
            self.made_for = wanted
        return x * self.cos + rotate_half(x) * self.sin

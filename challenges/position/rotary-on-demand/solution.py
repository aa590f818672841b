"""Rotary position embedding: pairs (i, i + hd/2), tables kept for the longest text so far."""

import torch
from torch import Tensor, nn


def rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class RotaryEmbedding(nn.Module):
    """The tables are no buffers: `.half()` would round them."""

    def __init__(self, head_dim: int, max_len: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.cos, self.sin = self.make_rows(0, max_len)

    def make_rows(self, start: int, stop: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines of these positions, (stop - start, hd) each."""
        exponents = torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim
        positions = torch.arange(start, stop, dtype=torch.float64)
        angles = torch.outer(positions, 10000.0**-exponents)
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()

    def grow(self, length: int) -> None:
        """Put rows behind both tables, up to `length`."""
        cos, sin = self.make_rows(len(self.cos), length)
        self.cos = torch.cat((self.cos, cos))
        self.sin = torch.cat((self.sin, sin))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-2]
        if length > len(self.cos):
            self.grow(max(length, 2 * len(self.cos)))
        cos, sin = (t[:length].to(x.device) for t in (self.cos, self.sin))
        return (x * cos + rotate_half(x) * sin).to(x.dtype)

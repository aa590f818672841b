"""Normalisation over the features of each position."""

import torch
from torch import Tensor, nn

from attnlab.references import _expect


class LayerNorm(nn.Module):
    """Mean 0 and variance 1 over the features, then a learned scale and shift.

        (x - mean) / sqrt(variance + eps) * weight + bias

    The variance divides by D, not by D - 1. Each position is normalised by itself: neither batch
    nor sequence matters. An input of zeros gives `bias`, thanks to eps, and no NaN. Computed in
    float32 for narrower types. About 3 times as slow as `F.layer_norm`, which goes over x once, the
    formula here five times.

    Shapes: x (..., D); output the same.
    Source: "Layer Normalization" (Ba et al., 2016)
    Rows: A6"""

    def __init__(self, dim: int, eps: float = 1e-5) -> None:
        super().__init__()
        _check(dim, eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor) -> Tensor:
        _check_width(x, self.weight)
        wide = _widened(x)
        centred = wide - wide.mean(dim=-1, keepdim=True)  #               (..., D)
        variance = centred.square().mean(dim=-1, keepdim=True)  #         (..., 1)
        unit = centred * torch.rsqrt(variance + self.eps)
        return (unit * self.weight + self.bias).to(x.dtype)


class RMSNorm(nn.Module):
    """Root mean square 1 over the features, then a learned scale; the mean stays.

        x / sqrt(mean(x^2) + eps) * weight

    Gemma stores weight - 1 and multiplies by (1 + weight): add 1 to convert. Computed in float32
    for narrower types and rounded once, at the end, as `nn.RMSNorm` does (Llama's rounds before
    the weight).

    Shapes: x (..., D); output the same.
    Source: "Root Mean Square Layer Normalization" (Zhang and Sennrich, 2019)
    Rows: A6"""

    def __init__(self, dim: int, eps: float = 1e-6) -> None:
        super().__init__()
        _check(dim, eps)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        _check_width(x, self.weight)
        wide = _widened(x)
        mean_square = wide.square().mean(dim=-1, keepdim=True)  #         (..., 1)
        unit = wide * torch.rsqrt(mean_square + self.eps)
        return (unit * self.weight).to(x.dtype)


def _widened(x: Tensor) -> Tensor:
    """A half cannot hold the square of 300."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _check(dim: int, eps: float) -> None:
    _expect.positive(dim=dim)
    if eps <= 0:
        raise ValueError(f"eps={eps}: expected a small positive number")


def _check_width(x: Tensor, weight: Tensor) -> None:
    if x.dim() < 1 or x.shape[-1:] != weight.shape:
        raise ValueError(
            f"x has shape {tuple(x.shape)}: expected (..., D) with D = {weight.shape[0]}"
        )

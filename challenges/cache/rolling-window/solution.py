"""Attention for endless texts: rotary positions, a sliding window, and a cache that forgets."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Recent(NamedTuple):
    """The last tokens of a text, at most as many as the window; keys are turned already."""

    keys: Tensor  # (B, H, kept, hd)
    values: Tensor
    read: int  # tokens of the text so far, those that were dropped included


def turn(heads: Tensor, places: Tensor) -> Tensor:
    """Rotate the pairs of features of (B, H, S, hd), token s by its place."""
    wide = torch.promote_types(heads.dtype, torch.float32)
    pair = torch.arange(0, heads.shape[-1], 2, device=heads.device, dtype=wide)
    angles = places[:, None] * 10000.0 ** (-pair / heads.shape[-1])
    cos, sin = angles.cos().to(heads.dtype), angles.sin().to(heads.dtype)
    a, b = heads.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class RollingAttention(nn.Module):
    def __init__(self, dim: int, heads: int, window: int) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.to_qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.to_out = nn.Linear(dim, dim)

    def forward(self, x: Tensor, cache: Recent | None = None) -> tuple[Tensor, Recent]:
        new = x.shape[1]
        q, k, v = self.to_qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        read = 0 if cache is None else cache.read
        places = torch.arange(read, read + new, device=x.device)
        q, k = turn(q, places), turn(k, places)
        if cache is not None:
            k = torch.cat((cache.keys, k), dim=2)
            v = torch.cat((cache.values, v), dim=2)

        kept = torch.arange(read + new - k.shape[2], read + new, device=x.device)
        behind = places[:, None] - kept  # how far each key is behind each query
        seen = (behind >= 0) & (behind < self.window)
        scores = (q @ k.mT) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(~seen, float("-inf")).softmax(dim=-1)
        out = self.to_out((weights @ v).transpose(1, 2).flatten(2))
        return out, Recent(k[:, :, -self.window :], v[:, :, -self.window :], read + new)

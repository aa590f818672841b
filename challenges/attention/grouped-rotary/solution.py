"""Attention of a small Llama: fewer key heads than query heads, positions by rotation."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def rotation(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosines and sines of every position and pair, (S, hd/2) each."""
    rates = 10000.0 ** (-torch.arange(0, width, 2, device=device).float() / width)
    angles = torch.outer(torch.arange(length, device=device).float(), rates)
    return angles.cos(), angles.sin()


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn (B, H, S, hd): feature i with feature i + hd/2."""
    a, b = heads.chunk(2, dim=-1)
    cos, sin = cos.to(heads.dtype), sin.to(heads.dtype)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class GroupedQueryAttention(nn.Module):
    def __init__(self, dim: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.width = heads, kv_heads, dim // heads
        self.wq = nn.Linear(dim, heads * self.width, bias=False)
        self.wk = nn.Linear(dim, kv_heads * self.width, bias=False)
        self.wv = nn.Linear(dim, kv_heads * self.width, bias=False)
        self.wo = nn.Linear(heads * self.width, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        b, s, _ = x.shape
        q = self.wq(x).view(b, s, self.heads, self.width).transpose(1, 2)
        k = self.wk(x).view(b, s, self.kv_heads, self.width).transpose(1, 2)
        v = self.wv(x).view(b, s, self.kv_heads, self.width).transpose(1, 2)
        cos, sin = rotation(s, self.width, x.device)
        q = rotate(q, cos, sin)
        k = rotate(k, cos, sin)
        group = self.heads // self.kv_heads
        k = k.repeat_interleave(group, dim=1)
        v = v.repeat_interleave(group, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(out.transpose(1, 2).reshape(b, s, -1))

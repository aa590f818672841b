"""A small Llama: rotary positions, grouped heads, RMSNorm, SwiGLU, a head tied to the embedding."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class Config:
    vocab: int = 13
    dim: int = 64
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2  # groups of n_heads / n_kv_heads query heads share keys and values
    hidden: int = 128
    max_len: int = 32
    theta: float = 100.0
    eps: float = 1e-5
    dropout: float = 0.05

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_heads


class RMSNorm(nn.Module):
    """Scales every position to a root mean square of 1, then by a learned gain."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        mean_square = wide.pow(2).mean(-1, keepdim=True)
        return (wide * torch.rsqrt(mean_square + self.eps)).type_as(x) * self.gain


def rotary_angles(cfg: Config) -> Tensor:
    """Position times theta^(-2 i / head_dim) for each pair i: (max_len, head_dim / 2)."""
    powers = torch.arange(0, cfg.head_dim, 2) / cfg.head_dim
    return torch.outer(torch.arange(cfg.max_len), cfg.theta**-powers)


def rotate(x: Tensor, angles: Tensor) -> Tensor:
    """Turn neighbours (0, 1), (2, 3), ... of x (..., T, head_dim) by angles (T, head_dim / 2)."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    cos, sin = angles.cos(), angles.sin()
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
    return turned.type_as(x)


class Attention(nn.Module):
    """Causal attention; query heads 0 to g - 1 read the first key head, the next g the second."""

    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.n_heads, self.n_kv_heads, self.head_dim = cfg.n_heads, cfg.n_kv_heads, cfg.head_dim
        self.wq = nn.Linear(cfg.dim, cfg.n_heads * cfg.head_dim, bias=False)
        self.wk = nn.Linear(cfg.dim, cfg.n_kv_heads * cfg.head_dim, bias=False)
        self.wv = nn.Linear(cfg.dim, cfg.n_kv_heads * cfg.head_dim, bias=False)
        self.wo = nn.Linear(cfg.n_heads * cfg.head_dim, cfg.dim, bias=False)
        self.cfg = cfg  # a table of angles would be rounded together with the weights

    def forward(self, x: Tensor) -> Tensor:
        T = x.shape[1]
        q = self.wq(x).unflatten(-1, (self.n_heads, self.head_dim)).transpose(1, 2)
        k = self.wk(x).unflatten(-1, (self.n_kv_heads, self.head_dim)).transpose(1, 2)
        v = self.wv(x).unflatten(-1, (self.n_kv_heads, self.head_dim)).transpose(1, 2)
        angles = rotary_angles(self.cfg)[:T].to(x.device)
        q = rotate(q, angles)
        k = rotate(k, angles)
        groups = self.n_heads // self.n_kv_heads
        k = k.repeat_interleave(groups, dim=1)
        v = v.repeat_interleave(groups, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """SwiGLU: w2(silu(w1 x) * w3 x)."""

    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.w1 = nn.Linear(cfg.dim, cfg.hidden, bias=False)
        self.w2 = nn.Linear(cfg.hidden, cfg.dim, bias=False)
        self.w3 = nn.Linear(cfg.dim, cfg.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    """Pre-norm: attention, then the feed-forward layer, each added to what it was made from."""

    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(cfg.dim, cfg.eps)
        self.attention = Attention(cfg)
        self.ffn_norm = RMSNorm(cfg.dim, cfg.eps)
        self.ffn = FeedForward(cfg)
        self.dropout = nn.Dropout(cfg.dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = x + self.dropout(self.attention(self.attention_norm(x)))
        return h + self.dropout(self.ffn(self.ffn_norm(h)))


class Llama(nn.Module):
    """Token ids (B, T) to logits (B, T, vocab)."""

    def __init__(self, cfg: Config) -> None:
        super().__init__()
        self.embedding = nn.Embedding(cfg.vocab, cfg.dim)
        self.layers = nn.ModuleList([Block(cfg) for _ in range(cfg.n_layers)])
        self.norm = RMSNorm(cfg.dim, cfg.eps)
        self.head = nn.Linear(cfg.dim, cfg.vocab, bias=False)
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        h = self.embedding(ids)
        for layer in self.layers:
            h = layer(h)
        return self.head(self.norm(h)).float()

"""A small Llama written with einsum; the mask and the rotations are made where they are used."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import einsum, nn


@dataclass(frozen=True)
class Config:
    vocab: int = 13
    dim: int = 64
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: int = 2
    hidden: int = 128
    max_len: int = 32
    theta: float = 100.0
    eps: float = 1e-5
    dropout: float = 0.05


def turn(x, theta):
    """Rotary positions for (b, t, ..., d): neighbours form a pair."""
    t, d = x.shape[1], x.shape[-1]
    rate = torch.exp(-torch.arange(0, d, 2, device=x.device) / d * torch.log(torch.tensor(theta)))
    angle = torch.arange(t, device=x.device)[:, None] * rate[None]
    angle = angle.view(t, *[1] * (x.dim() - 3), d // 2)
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * angle.cos() - x[..., 1::2] * angle.sin()
    out[..., 1::2] = x[..., 1::2] * angle.cos() + x[..., 0::2] * angle.sin()
    return out


class Norm(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(cfg.dim))
        self.eps = cfg.eps

    def forward(self, x):
        rms = ((x * x).sum(dim=-1, keepdim=True) / x.shape[-1] + self.eps).sqrt()
        return x / rms * self.scale


class Attention(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.cfg = cfg
        self.d = cfg.dim // cfg.n_heads
        self.wq = nn.Linear(cfg.dim, cfg.n_heads * self.d, bias=False)
        self.wkv = nn.Linear(cfg.dim, 2 * cfg.n_kv_heads * self.d, bias=False)
        self.wo = nn.Linear(cfg.n_heads * self.d, cfg.dim, bias=False)

    def forward(self, x):
        b, t, _ = x.shape
        kv, group = self.cfg.n_kv_heads, self.cfg.n_heads // self.cfg.n_kv_heads
        q = self.wq(x).view(b, t, kv, group, self.d)
        k, v = self.wkv(x).view(b, t, 2, kv, self.d).unbind(dim=2)
        q, k = turn(q, self.cfg.theta), turn(k, self.cfg.theta)
        scores = einsum("bikgd,bjkd->bkgij", q, k) * self.d**-0.5
        later = torch.ones(t, t, device=x.device).triu(1).bool()
        weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
        mixed = einsum("bkgij,bjkd->bikgd", weights, v)
        return self.wo(mixed.reshape(b, t, -1))


class FeedForward(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.gate = nn.Linear(cfg.dim, cfg.hidden, bias=False)
        self.up = nn.Linear(cfg.dim, cfg.hidden, bias=False)
        self.down = nn.Linear(cfg.hidden, cfg.dim, bias=False)
        self.act = nn.SiLU()

    def forward(self, x):
        return self.down(self.up(x) * self.act(self.gate(x)))


class Residual(nn.Module):
    def __init__(self, cfg: Config, layer: nn.Module):
        super().__init__()
        self.norm, self.layer = Norm(cfg), layer
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, x):
        return x + self.drop(self.layer(self.norm(x)))


class Block(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.attention = Residual(cfg, Attention(cfg))
        self.feed_forward = Residual(cfg, FeedForward(cfg))

    def forward(self, x):
        return self.feed_forward(self.attention(x))


class Llama(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.tokens = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.Sequential(*[Block(cfg) for _ in range(cfg.n_layers)])
        self.last = Norm(cfg)
        with torch.no_grad():
            for name, weight in self.named_parameters():
                if weight.dim() == 2:
                    weight.normal_(0, 0.02 if "tokens" in name else weight.shape[1] ** -0.5)

    def forward(self, ids):
        x = self.last(self.blocks(self.tokens(ids)))
        return einsum("btd,vd->btv", x, self.tokens.weight)

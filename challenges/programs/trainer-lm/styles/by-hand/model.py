"""A word-level language model in which attention is written out."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass
class ModelConfig:
    vocab_size: int
    d_model: int = 48
    nhead: int = 4
    num_layers: int = 2
    dim_feedforward: int = 96
    max_len: int = 32
    dropout: float = 0.05


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        waves = torch.empty(max_len, d_model)
        for place in range(max_len):
            for channel in range(d_model):
                angle = place / 10000 ** (2 * (channel // 2) / d_model)
                waves[place, channel] = math.cos(angle) if channel % 2 else math.sin(angle)
        self.register_buffer("waves", waves, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.waves[torch.arange(x.size(1), device=x.device)]


class Attention(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.heads = cfg.nhead
        self.query, self.key, self.value, self.mix = (
            nn.Linear(cfg.d_model, cfg.d_model) for _ in range(4)
        )
        self.drop = nn.Dropout(cfg.dropout)

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.heads, -1)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self.split(part(x)) for part in (self.query, self.key, self.value))
        scores = torch.einsum("bihd,bjhd->bhij", q, k) * q.size(-1) ** -0.5
        seen = torch.ones(x.size(1), x.size(1), device=x.device).tril()
        weights = self.drop(scores.masked_fill(seen == 0, -math.inf).softmax(-1))
        return self.mix(torch.einsum("bhij,bjhd->bihd", weights, v).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.attention = Attention(cfg)
        self.widen = nn.Linear(cfg.d_model, cfg.dim_feedforward)
        self.narrow = nn.Linear(cfg.dim_feedforward, cfg.d_model)
        self.norm1 = nn.LayerNorm(cfg.d_model)
        self.norm2 = nn.LayerNorm(cfg.d_model)
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm1(self.drop(self.attention(x)) + x)
        hidden = self.drop(F.gelu(self.widen(x)))
        return self.norm2(self.drop(self.narrow(hidden)) + x)


class LanguageModel(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.d_model = cfg.d_model
        self.words = nn.Embedding(cfg.vocab_size, cfg.d_model)
        nn.init.normal_(self.words.weight, std=cfg.d_model**-0.5)
        self.positions = PositionalEncoding(cfg.d_model, cfg.max_len)
        self.layers = nn.ModuleList()
        for _ in range(cfg.num_layers):
            self.layers.append(DecoderLayer(cfg))
        self.output = nn.Linear(cfg.d_model, cfg.vocab_size)
        nn.init.normal_(self.output.weight, std=0.02)
        nn.init.zeros_(self.output.bias)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.positions(self.words(ids).mul(math.sqrt(self.d_model)))
        for layer in self.layers:
            x = layer(x)
        return self.output(x)

"""A word-level language model: the decoder of "Attention Is All You Need", without an encoder."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


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
    """Adds fixed waves: channels 2i and 2i + 1 get sine and cosine of position / 10000^(2i / d)."""

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        table = torch.zeros(max_len, d_model)
        table[:, 0::2] = torch.sin(position * frequency)
        table[:, 1::2] = torch.cos(position * frequency)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.size(1)]


def causal_mask(length: int, device: torch.device) -> Tensor:
    """(length, length), of the kind that nn.MultiheadAttention takes: True hides a position."""
    return torch.triu(torch.ones(length, length, device=device), diagonal=1).bool()


class DecoderLayer(nn.Module):
    """Post-norm, on purpose: each sublayer is added to its input, and the sum is normalised."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.self_attn = nn.MultiheadAttention(
            cfg.d_model, cfg.nhead, dropout=cfg.dropout, batch_first=True
        )
        self.feed_forward = nn.Sequential(
            nn.Linear(cfg.d_model, cfg.dim_feedforward),
            nn.GELU(),
            nn.Dropout(cfg.dropout),
            nn.Linear(cfg.dim_feedforward, cfg.d_model),
        )
        self.norm1 = nn.LayerNorm(cfg.d_model)
        self.norm2 = nn.LayerNorm(cfg.d_model)
        self.dropout = nn.Dropout(cfg.dropout)

    def forward(self, x: Tensor) -> Tensor:
        mask = causal_mask(x.size(1), x.device)
        attended, _ = self.self_attn(x, x, x, attn_mask=mask, need_weights=False)
        x = self.norm1(x + self.dropout(attended))
        return self.norm2(x + self.dropout(self.feed_forward(x)))


class LanguageModel(nn.Module):
    """Word ids (batch, length) to logits (batch, length, vocab_size)."""

    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.scale = math.sqrt(cfg.d_model)  # embeddings are small, waves are of size 1
        self.embedding = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.positions = PositionalEncoding(cfg.d_model, cfg.max_len)
        self.layers = nn.ModuleList([DecoderLayer(cfg) for _ in range(cfg.num_layers)])
        self.output = nn.Linear(cfg.d_model, cfg.vocab_size)
        nn.init.normal_(self.embedding.weight, std=1 / self.scale)
        nn.init.normal_(self.output.weight, std=0.02)
        nn.init.zeros_(self.output.bias)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.positions(self.embedding(ids) * self.scale)
        for layer in self.layers:
            x = layer(x)
        return self.output(x)

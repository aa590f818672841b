"""A word-level language model made of the layers that PyTorch brings along."""

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
    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        pairs = torch.arange(d_model // 2)
        angles = torch.outer(torch.arange(max_len), 10000.0 ** (-2 * pairs / d_model))
        self.register_buffer("waves", torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.waves[None, : x.shape[-2], :]


class DecoderLayer(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(
            cfg.d_model, cfg.nhead, cfg.dim_feedforward, cfg.dropout, "gelu", batch_first=True
        )

    def forward(self, x: Tensor) -> Tensor:
        hidden = nn.Transformer.generate_square_subsequent_mask(x.shape[1], x.device, x.dtype)
        return self.inner(x, src_mask=hidden)


class LanguageModel(nn.Module):
    def __init__(self, cfg: ModelConfig) -> None:
        super().__init__()
        self.embed = nn.Embedding(cfg.vocab_size, cfg.d_model)
        self.encode = PositionalEncoding(cfg.d_model, cfg.max_len)
        self.stack = nn.Sequential(*(DecoderLayer(cfg) for _ in range(cfg.num_layers)))
        self.head = nn.Linear(cfg.d_model, cfg.vocab_size)
        nn.init.normal_(self.embed.weight, std=cfg.d_model**-0.5)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids: Tensor) -> Tensor:
        words = self.embed(ids) * self.embed.embedding_dim**0.5
        return self.head(self.stack(self.encode(words)))

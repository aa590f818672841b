"""A small decoder-only transformer over characters."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import data


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which no position sees a later one."""

    def __init__(self, width: int, heads: int, context: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)
        future = torch.triu(torch.ones(context, context, dtype=torch.bool), diagonal=1)
        self.register_buffer("future", future, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        head_width = width // self.heads
        q, k, v = self.qkv(x).split(width, dim=-1)
        q = q.view(batch, length, self.heads, head_width).transpose(1, 2)
        k = k.view(batch, length, self.heads, head_width).transpose(1, 2)
        v = v.view(batch, length, self.heads, head_width).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(head_width)
        scores = scores.masked_fill(self.future[:length, :length], float("-inf"))
        weights = self.drop(scores.softmax(dim=-1))
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        return self.out(mixed)


class MLP(nn.Module):
    """Two linear layers with a GELU between them, applied to each position alone."""

    def __init__(self, width: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        x = F.gelu(self.up(x))
        return F.dropout(self.down(x), self.dropout, training=self.training)


class Block(nn.Module):
    """Attention, then the MLP, each on a normalised copy and added to the residual stream."""

    def __init__(self, width: int, heads: int, context: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = CausalSelfAttention(width, heads, context, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = MLP(width, dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x


class GPT(nn.Module):
    """Character ids (batch, length) to logits (batch, length, vocabulary)."""

    def __init__(
        self,
        vocabulary: int,
        context: int,
        width: int,
        heads: int,
        layers: int,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        self.context = context
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(Block(width, heads, context, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self.init_weights)

    def init_weights(self, module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def states(self, ids: Tensor) -> Tensor:
        """What the head reads: (batch, length, width)."""
        batch, length = ids.shape
        places = torch.arange(length, device=ids.device)
        x = self.drop(self.tokens(ids) + self.positions(places))
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.states(ids))


class Classifier(nn.Module):
    """Padded ids (batch, length) to logits (batch, classes), from the mean state of each row."""

    def __init__(self, model: GPT, classes: int) -> None:
        super().__init__()
        self.model = model
        self.classify = nn.Linear(model.tokens.embedding_dim, classes)

    def forward(self, ids: Tensor) -> Tensor:
        real = (ids != data.PADDING).unsqueeze(-1)
        states = self.model.states(ids)
        total = states.masked_fill(~real, 0.0).sum(dim=1)
        return self.classify(total / real.sum(dim=1).clamp(min=1))

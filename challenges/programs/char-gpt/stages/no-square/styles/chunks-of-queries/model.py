"""A small decoder-only transformer over characters."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CHUNK = 16  # keys that are looked at together


class CausalSelfAttention(nn.Module):
    """Multi-head self-attention in which no position sees a later one.

    Keys are read in chunks, so that memory grows with the length and not with its square.
    """

    def __init__(self, width: int, heads: int, context: int, dropout: float = 0.1) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        head_width = width // self.heads
        q, k, v = self.qkv(x).split(width, dim=-1)
        q = q.view(batch, length, self.heads, head_width).transpose(1, 2) / math.sqrt(head_width)
        k = k.view(batch, length, self.heads, head_width).transpose(1, 2)
        v = v.view(batch, length, self.heads, head_width).transpose(1, 2)
        parts = []
        for start in range(0, length, CHUNK):
            end = min(start + CHUNK, length)
            scores = q[:, :, start:end] @ k[:, :, :end].transpose(-2, -1)
            rows, columns = torch.arange(start, end), torch.arange(end)
            scores = scores.masked_fill(columns > rows[:, None], float("-inf"))
            parts.append(self.drop(scores.softmax(dim=-1)) @ v[:, :, :end])
        mixed = torch.cat(parts, dim=2).transpose(1, 2).reshape(batch, length, width)
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

    def forward(self, ids: Tensor) -> Tensor:
        batch, length = ids.shape
        places = torch.arange(length, device=ids.device)
        x = self.drop(self.tokens(ids) + self.positions(places))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

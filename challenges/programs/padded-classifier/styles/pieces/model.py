"""An encoder for padded reviews, in which heads are rows of a batched product."""

import torch
from torch import Tensor, nn


class SelfAttention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(hidden_size, hidden_size) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def by_head(self, states: Tensor) -> Tensor:
        """(B, T, hidden_size) to (B * heads, T, head_size)"""
        return states.unflatten(2, (self.num_heads, -1)).transpose(1, 2).flatten(0, 1)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (self.by_head(part(states)) for part in (self.q, self.k, self.v))
        bias = torch.zeros_like(mask, dtype=states.dtype).masked_fill(~mask, -1e9)
        bias = bias.unsqueeze(1).repeat_interleave(self.num_heads, dim=0)
        scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=q.size(-1) ** -0.5)
        mixed = torch.bmm(self.dropout(scores.softmax(2)), v)
        mixed = mixed.unflatten(0, (-1, self.num_heads)).transpose(1, 2)
        return self.out(mixed.flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden_size)
        self.attention = SelfAttention(hidden_size, num_heads, dropout)
        self.norm2 = nn.LayerNorm(hidden_size)
        self.linear1 = nn.Linear(hidden_size, 2 * hidden_size)
        self.linear2 = nn.Linear(2 * hidden_size, hidden_size)
        self.activation = nn.GELU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        states = states + self.attention(self.norm1(states), mask)
        return states + self.dropout(
            self.linear2(self.activation(self.linear1(self.norm2(states))))
        )


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    total = states.masked_fill(~mask[..., None], 0).sum(-2)
    return total / mask.sum(-1, keepdim=True).clamp(min=1)


class Classifier(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        num_classes: int,
        max_length: int,
        hidden_size: int,
        num_heads: int,
        num_layers: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocab_size, hidden_size)
        self.positions = nn.Embedding(max_length, hidden_size)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(EncoderLayer(hidden_size, num_heads, dropout))
        self.norm = nn.LayerNorm(hidden_size)
        self.head = nn.Linear(hidden_size, num_classes)
        for table in (self.words, self.positions):
            nn.init.normal_(table.weight, std=0.5)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(ids.size(1)).expand_as(ids)
        states = self.dropout(self.words(ids) + self.positions(places))
        for layer in self.layers:
            states = layer(states, mask)
        return self.head(masked_mean(self.norm(states), mask))

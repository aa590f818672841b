"""An encoder that reads padded reviews and says what each of them is."""

import torch
from torch import Tensor, nn


class SelfAttention(nn.Module):
    """Every word attends to all real words; mask (B, T) is True where a word is real."""

    def __init__(self, hidden_size: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key = nn.Linear(hidden_size, hidden_size)
        self.value = nn.Linear(hidden_size, hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)
        self.dropout = nn.Dropout(dropout)

    def split_heads(self, states: Tensor) -> Tensor:
        """(B, T, hidden_size) to (B, T, heads, head_size)"""
        b, t, d = states.shape
        return states.view(b, t, self.num_heads, d // self.num_heads)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        q = self.split_heads(self.query(states))
        k = self.split_heads(self.key(states))
        v = self.split_heads(self.value(states))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        scores = scores / q.shape[-1] ** 0.5
        hidden = mask.logical_not()
        scores = scores.masked_fill(hidden[:, None, None, :], torch.finfo(scores.dtype).min)
        probs = self.dropout(scores.softmax(dim=-1))
        context = torch.einsum("bhqk,bkhd->bqhd", probs, v)
        return self.dense(context.flatten(start_dim=2))


class EncoderLayer(nn.Module):
    """Pre-norm: x + attention(norm(x)), then x + feed_forward(norm(x))."""

    def __init__(self, hidden_size: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(hidden_size)
        self.attention = SelfAttention(hidden_size, num_heads, dropout)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(hidden_size),
            nn.Linear(hidden_size, 2 * hidden_size),
            nn.GELU(),
            nn.Linear(2 * hidden_size, hidden_size),
            nn.Dropout(dropout),
        )

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        states = states + self.attention(self.attention_norm(states), mask)
        return states + self.feed_forward(states)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    """The mean over the real words: (B, T, hidden_size) to (B, hidden_size)."""
    real = mask.unsqueeze(-1).to(states.dtype)
    total = (states * real).sum(dim=1)
    return total / real.sum(dim=1).clamp(min=1)


class Classifier(nn.Module):
    """Word ids and mask, both (B, T), to logits (B, classes). The position of a word is its index in
    the row, whichever words the mask hides."""

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
        self.layers = nn.ModuleList(
            EncoderLayer(hidden_size, num_heads, dropout) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(hidden_size)
        self.head = nn.Linear(hidden_size, num_classes)
        nn.init.normal_(self.words.weight, std=0.5)
        nn.init.normal_(self.positions.weight, std=0.5)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(ids.shape[1], device=ids.device)
        states = self.dropout(self.words(ids) + self.positions(places))
        for layer in self.layers:
            states = layer(states, mask)
        pooled = masked_mean(self.norm(states), mask)
        return self.head(pooled)

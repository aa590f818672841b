"""An encoder for padded reviews, with the attention that PyTorch brings along."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SelfAttention(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.num_heads, self.rate = num_heads, dropout
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)
        self.out = nn.Linear(hidden_size, hidden_size)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        q, k, v = (
            part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for part in self.qkv(states).chunk(3, dim=-1)
        )
        rate = self.rate if self.training else 0.0
        mixed = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask[:, None, None, :], dropout_p=rate
        )
        return self.out(mixed.transpose(1, 2).reshape(states.shape))


class EncoderLayer(nn.Module):
    def __init__(self, hidden_size: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden_size)
        self.attention = SelfAttention(hidden_size, num_heads, dropout)
        self.norm2 = nn.LayerNorm(hidden_size)
        self.linear1 = nn.Linear(hidden_size, 2 * hidden_size)
        self.linear2 = nn.Linear(2 * hidden_size, hidden_size)
        self.rate = dropout

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        states = self.attention(self.norm1(states), mask) + states
        update = self.linear2(F.gelu(self.linear1(self.norm2(states))))
        return states + F.dropout(update, self.rate, self.training)


def masked_mean(states: Tensor, mask: Tensor) -> Tensor:
    shares = mask.to(states.dtype)
    shares = shares / shares.sum(1, keepdim=True).clamp(min=1)
    return torch.einsum("bt,btd->bd", shares, states)


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
        self.embed = nn.Embedding(vocab_size, hidden_size)
        self.positions = nn.Parameter(torch.randn(max_length, hidden_size) / 2)
        self.drop = nn.Dropout(dropout)
        stack = [EncoderLayer(hidden_size, num_heads, dropout) for _ in range(num_layers)]
        self.layers = nn.ModuleList(stack)
        self.norm = nn.LayerNorm(hidden_size)
        self.classify = nn.Linear(hidden_size, num_classes)
        nn.init.normal_(self.embed.weight, std=0.5)
        nn.init.normal_(self.classify.weight, std=0.02)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        states = self.drop(self.embed(ids) + self.positions[: ids.size(1)])
        for layer in self.layers:
            states = layer(states, mask)
        return self.classify(masked_mean(self.norm(states), mask))

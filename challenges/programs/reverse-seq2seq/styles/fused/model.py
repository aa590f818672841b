"""The same model with the fused attention, and masks that are made where they are needed."""

import torch
import torch.nn.functional as F
from torch import nn

from data import PAD


def causal_mask(n, device):
    return torch.arange(n, device=device)[:, None] >= torch.arange(n, device=device)


class Attention(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.heads, self.p = heads, dropout
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x, memory, keep):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in (self.to_q(x), self.to_k(memory), self.to_v(memory))
        )
        p = self.p if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None], dropout_p=p)
        return self.to_out(y.transpose(1, 2).flatten(-2))


class MLP(nn.Sequential):
    def __init__(self, dim, dropout):
        layers = [nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * dim, dim)]
        super().__init__(*layers)


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = MLP(dim, dropout)

    def forward(self, x, keep):
        y = self.norm1(x)
        x = x + self.attention(y, y, keep)
        return x + self.mlp(self.norm2(x))


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.cross = Attention(dim, heads, dropout)
        self.norm3 = nn.LayerNorm(dim)
        self.mlp = MLP(dim, dropout)

    def forward(self, x, memory, keep):
        y = self.norm1(x)
        x = x + self.attention(y, y, causal_mask(x.shape[1], x.device)[None])
        x = x + self.cross(self.norm2(x), memory, keep)
        return x + self.mlp(self.norm3(x))


class Seq2Seq(nn.Module):
    def __init__(self, vocabulary, longest, dim=64, heads=4, layers=1, dropout=0.02):
        super().__init__()
        self.letters = nn.Embedding(vocabulary, dim)
        self.places = nn.Embedding(longest, dim)
        self.encoder = nn.ModuleList(EncoderLayer(dim, heads, dropout) for _ in range(layers))
        self.decoder = nn.ModuleList(DecoderLayer(dim, heads, dropout) for _ in range(layers))
        self.memory_norm = nn.LayerNorm(dim)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary)
        nn.init.normal_(self.letters.weight, std=0.3)
        nn.init.normal_(self.places.weight, std=0.3)
        nn.init.normal_(self.head.weight, std=0.02)

    def embed(self, ids):
        return self.letters(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))

    def encode(self, source):
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, source.ne(PAD)[:, None])
        return self.memory_norm(x)

    def decode(self, written, memory, source):
        x = self.embed(written)
        for layer in self.decoder:
            x = layer(x, memory, source.ne(PAD)[:, None])
        return self.head(self.norm(x))

    def forward(self, source, written):
        return self.decode(written, self.encode(source), source)

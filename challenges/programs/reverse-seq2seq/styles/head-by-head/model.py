"""The same model, one head after the other, with masks that are added and halves of a class each."""

import torch
from torch import nn

from data import PAD


def hiding(keep, like):
    """0 where one may look, else minus infinity."""
    return torch.zeros_like(keep, dtype=like.dtype).masked_fill(keep.logical_not(), -torch.inf)


class Attention(nn.Module):
    def __init__(self, dim, heads, dropout):
        super().__init__()
        self.width = dim // heads
        for name in ("to_q", "to_k", "to_v", "to_out"):
            setattr(self, name, nn.Linear(dim, dim))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, keep):
        mask, mixed = hiding(keep, x), []
        projected = self.to_q(x), self.to_k(memory), self.to_v(memory)
        heads = (y.split(self.width, dim=-1) for y in projected)
        for q, k, v in zip(*heads):
            scores = q.mul(self.width**-0.5) @ k.mT
            mixed.append(self.dropout((scores + mask).softmax(-1)) @ v)
        return self.to_out(torch.cat(mixed, dim=-1))


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
        places = torch.arange(x.shape[1], device=x.device)
        x = x + self.attention(y, y, places <= places[None, :, None])
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

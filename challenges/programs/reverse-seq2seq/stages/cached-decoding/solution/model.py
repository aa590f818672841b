"""An encoder and a decoder, in the manner of the first transformer."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

import data


class LayerState(NamedTuple):
    """What a decoder layer knows before the next place."""

    keys: Tensor  # of what was written, (B, H, T, D / H)
    values: Tensor
    memory: tuple[Tensor, Tensor]  # keys and values of the memory, (B, H, S, D / H)


class State(NamedTuple):
    """What the decoder knows before the next place."""

    keep: Tensor  # places of the source that are letters, (B, 1, S)
    layers: list[LayerState]


class Attention(nn.Module):
    """Queries from x (B, T, D); keys and values from memory (B, S, D)."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.to_out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def split(self, x: Tensor) -> Tensor:
        """(B, L, D) to (B, H, L, D / H)."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def project(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a memory, (B, H, S, D / H) each."""
        return self.split(self.to_k(memory)), self.split(self.to_v(memory))

    def forward(self, x: Tensor, memory: Tensor, keep: Tensor) -> Tensor:
        """`keep` is True where a query may look: (B, T, S), or axes of 1 in place of B and T."""
        return self.look_up(x, *self.project(memory), keep)

    def look_up(self, x: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
        """What queries from x find in keys and values that are known."""
        q = self.split(self.to_q(x))
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) / math.sqrt(q.size(-1))
        weights = scores.masked_fill(~keep.unsqueeze(1), -math.inf).softmax(dim=-1)
        mixed = torch.einsum("bhts,bhsd->bthd", self.dropout(weights), v)
        return self.to_out(mixed.flatten(2))


def feed_forward(dim: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(dim, 2 * dim), nn.GELU(), nn.Dropout(dropout), nn.Linear(2 * dim, dim)
    )


class EncoderLayer(nn.Module):
    """Pre-norm: letters look at all letters of their word, then think on their own."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = feed_forward(dim, dropout)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, keep)
        return x + self.mlp(self.norm2(x))


class DecoderLayer(nn.Module):
    """Pre-norm: what is written looks at what was written before, then at the encoder's memory."""

    def __init__(self, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attention = Attention(dim, heads, dropout)
        self.norm2 = nn.LayerNorm(dim)
        self.cross = Attention(dim, heads, dropout)
        self.norm3 = nn.LayerNorm(dim)
        self.mlp = feed_forward(dim, dropout)

    def forward(self, x: Tensor, memory: Tensor, keep: Tensor) -> Tensor:
        """`keep` (B, 1, S) says which places of the memory are letters."""
        length = x.size(1)
        causal = torch.ones(1, length, length, dtype=torch.bool, device=x.device).tril()
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, causal)
        x = x + self.cross(self.norm2(x), memory, keep)
        return x + self.mlp(self.norm3(x))

    def step(self, x: Tensor, known: LayerState, keep: Tensor) -> tuple[Tensor, LayerState]:
        """One more place, x (B, 1, D), behind those whose keys and values are known."""
        normed = self.norm1(x)
        keys, values = (
            torch.cat([old, new], dim=2)
            for old, new in zip((known.keys, known.values), self.attention.project(normed))
        )
        every = torch.ones(1, 1, keys.size(2), dtype=torch.bool, device=x.device)
        x = x + self.attention.look_up(normed, keys, values, every)
        x = x + self.cross.look_up(self.norm2(x), *known.memory, keep)
        return x + self.mlp(self.norm3(x)), known._replace(keys=keys, values=values)


class Seq2Seq(nn.Module):
    """Source ids (B, S) and the ids written so far (B, T) to logits (B, T, vocabulary)."""

    def __init__(
        self,
        vocabulary: int,
        longest: int,
        dim: int = 64,
        heads: int = 4,
        layers: int = 1,
        dropout: float = 0.02,
    ) -> None:
        super().__init__()
        self.letters = nn.Embedding(vocabulary, dim)
        self.places = nn.Embedding(longest, dim)
        self.encoder = nn.ModuleList([EncoderLayer(dim, heads, dropout) for _ in range(layers)])
        self.decoder = nn.ModuleList([DecoderLayer(dim, heads, dropout) for _ in range(layers)])
        self.memory_norm = nn.LayerNorm(dim)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocabulary)
        for table in (self.letters, self.places):
            nn.init.normal_(table.weight, std=0.3)
        nn.init.normal_(self.head.weight, std=0.02)

    def embed(self, ids: Tensor) -> Tensor:
        """Letters and where they stand, for both halves: (B, length, dim)."""
        return self.letters(ids) + self.places.weight[: ids.size(1)]

    def encode(self, source: Tensor) -> Tensor:
        """The memory (B, S, dim); nobody looks at padding."""
        keep = (source != data.PAD).unsqueeze(1)
        x = self.embed(source)
        for layer in self.encoder:
            x = layer(x, keep)
        return self.memory_norm(x)

    def decode(self, written: Tensor, memory: Tensor, source: Tensor) -> Tensor:
        """The logits of what follows each place of `written`. Its padding stands at the end, where
        the causal mask hides it from all that counts; that of the source is hidden from all."""
        keep = (source != data.PAD).unsqueeze(1)
        x = self.embed(written)
        for layer in self.decoder:
            x = layer(x, memory, keep)
        return self.head(self.norm(x))

    def forward(self, source: Tensor, written: Tensor) -> Tensor:
        return self.decode(written, self.encode(source), source)

    def begin(self, source: Tensor) -> State:
        """The state in which nothing is written yet."""
        memory = self.encode(source)
        layers = []
        for layer in self.decoder:
            nothing = layer.attention.split(memory[:, :0])
            layers.append(LayerState(nothing, nothing, layer.cross.project(memory)))
        return State((source != data.PAD).unsqueeze(1), layers)

    def advance(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """The ids (B,) that were just written: logits (B, vocabulary) of what follows them."""
        place = state.layers[0].keys.size(2)
        x = (self.letters(ids) + self.places.weight[place]).unsqueeze(1)
        layers = []
        for layer, known in zip(self.decoder, state.layers):
            x, known = layer.step(x, known, state.keep)
            layers.append(known)
        return self.head(self.norm(x))[:, 0], State(state.keep, layers)

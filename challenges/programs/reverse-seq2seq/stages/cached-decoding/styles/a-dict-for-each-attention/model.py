"""An encoder and a decoder, in the manner of the first transformer."""

import math

import torch
from torch import Tensor, nn

import data


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

    def forward(
        self, x: Tensor, memory: Tensor | None, keep: Tensor, cache: dict[str, Tensor] | None = None
    ) -> Tensor:
        """`keep` is True where a query may look: (B, T, S), or axes of 1 in place of B and T.
        A cache holds keys and values of earlier calls; there may be no memory, then those suffice."""
        q = self.split(self.to_q(x))
        cache = {} if cache is None else cache
        if memory is not None:
            for name, layer in (("k", self.to_k), ("v", self.to_v)):
                new = self.split(layer(memory))
                cache[name] = torch.cat([cache[name], new], dim=2) if name in cache else new
        k, v = cache["k"], cache["v"]
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

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None,
        keep: Tensor,
        own: dict[str, Tensor] | None = None,
        other: dict[str, Tensor] | None = None,
    ) -> Tensor:
        """`keep` (B, 1, S) says which places of the memory are letters."""
        length = x.size(1)
        past = own["k"].size(2) if own else 0
        causal = torch.ones(1, length, past + length, dtype=torch.bool, device=x.device).tril(past)
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, causal, own)
        x = x + self.cross(self.norm2(x), memory, keep, other)
        return x + self.mlp(self.norm3(x))


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

    def embed(self, ids: Tensor, first: int = 0) -> Tensor:
        """Letters and where they stand, for both halves: (B, length, dim)."""
        return self.letters(ids) + self.places.weight[first : first + ids.size(1)]

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

    def begin(self, source: Tensor) -> dict:
        caches = [({}, {}) for _ in self.decoder]
        keep = (source != data.PAD).unsqueeze(1)
        return {"memory": self.encode(source), "keep": keep, "caches": caches, "place": 0}

    def advance(self, ids: Tensor, state: dict) -> tuple[Tensor, dict]:
        x = self.embed(ids[:, None], state["place"])
        for layer, (own, other) in zip(self.decoder, state["caches"]):
            x = layer(x, None if other else state["memory"], state["keep"], own, other)
        state["place"] += 1
        return self.head(self.norm(x)).squeeze(1), state

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

    def forward(self, x: Tensor, memory: Tensor, keep: Tensor) -> Tensor:
        """`keep` is True where a query may look: (B, T, S), or axes of 1 in place of B and T."""
        q = self.split(self.to_q(x))
        k = self.split(self.to_k(memory))
        v = self.split(self.to_v(memory))
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

    def begin(self, source: Tensor) -> "Writing":
        return Writing(self, source)

    def advance(self, ids: Tensor, state: "Writing") -> tuple[Tensor, "Writing"]:
        return state.write(ids), state


class Writing:
    """An answer while it is written: keys and values with room for the longest answer."""

    def __init__(self, model: Seq2Seq, source: Tensor) -> None:
        self.model, self.place = model, 0
        memory = model.encode(source)
        self.letters = (source != data.PAD)[:, None, None, :]
        longest = len(model.places.weight)
        self.read = [
            (each.cross.split(each.cross.to_k(memory)), each.cross.split(each.cross.to_v(memory)))
            for each in model.decoder
        ]
        self.written = [
            tuple(k.new_zeros(*k.shape[:2], longest, k.size(3)) for _ in "kv") for k, _ in self.read
        ]

    def write(self, ids: Tensor) -> Tensor:
        place, model = self.place, self.model
        seen = torch.arange(len(model.places.weight), device=ids.device) <= place
        x = model.letters(ids.unsqueeze(1)) + model.places.weight[place]
        for layer, read, written in zip(model.decoder, self.read, self.written):
            own, cross = layer.attention, layer.cross
            normed = layer.norm1(x)
            for room, project in zip(written, (own.to_k, own.to_v)):
                room[:, :, place] = own.split(project(normed))[:, :, 0]
            x = x + self._attend(own, normed, written, seen)
            x = x + self._attend(cross, layer.norm2(x), read, self.letters)
            x = x + layer.mlp(layer.norm3(x))
        self.place += 1
        return model.head(model.norm(x))[:, -1]

    def _attend(self, layer: Attention, x: Tensor, known: tuple, visible: Tensor) -> Tensor:
        k, v = known
        scores = layer.split(layer.to_q(x)) @ k.mT / k.size(3) ** 0.5
        mixed = scores.masked_fill(~visible, -math.inf).softmax(-1) @ v
        return layer.to_out(mixed.transpose(1, 2).flatten(2))

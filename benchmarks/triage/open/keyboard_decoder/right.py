"""Decode noisy key presses back to words: encoder with cross attention from learned slots."""
from __future__ import annotations

import argparse
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"]
KEYS = "".join(ROWS)
WORDS = "water house green light small world sound plant paper table river horse".split()


def neighbour(c: str) -> str:
    row = next(r for r in ROWS if c in r)
    i = row.index(c) + (1 if torch.rand(()) < 0.5 else -1)
    return row[max(0, min(len(row) - 1, i))]


def presses(n: int, noise: float = 0.25) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = [], []
    for _ in range(n):
        w = WORDS[int(torch.randint(len(WORDS), ()))]
        x.append([KEYS.index(neighbour(c) if torch.rand(()) < noise else c) for c in w])
        y.append([KEYS.index(c) for c in w])
    return torch.tensor(x), torch.tensor(y)


@dataclass
class Options:
    dim: int = 48
    heads: int = 4
    layers: int = 2
    dropout: float = 0.2
    lr: float = 2e-3
    epochs: int = 4
    seed: int = 0


class Attend(nn.Module):
    def __init__(self, o: Options) -> None:
        super().__init__()
        self.q, self.k, self.v, self.proj = (nn.Linear(o.dim, o.dim) for _ in range(4))
        self.heads, self.p = o.heads, o.dropout

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        def heads(t: torch.Tensor) -> torch.Tensor:
            return t.reshape(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)

        y = F.scaled_dot_product_attention(
            heads(self.q(x)), heads(self.k(context)), heads(self.v(context)),
            dropout_p=self.p if self.training else 0.0,
        )
        return self.proj(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, o: Options) -> None:
        super().__init__()
        self.attend = Attend(o)
        self.ff = nn.Sequential(nn.Linear(o.dim, 4 * o.dim), nn.GELU(), nn.Dropout(o.dropout), nn.Linear(4 * o.dim, o.dim))
        self.nx, self.nc, self.nf = nn.LayerNorm(o.dim), nn.LayerNorm(o.dim), nn.LayerNorm(o.dim)

    def forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.nx(x), self.nc(context))
        return x + self.ff(self.nf(x))


class KeyDecoder(nn.Module):
    def __init__(self, o: Options, length: int = 5) -> None:
        super().__init__()
        self.key = nn.Embedding(len(KEYS), o.dim)
        self.place = nn.Parameter(torch.randn(length, o.dim) * 0.3)
        self.slots = nn.Parameter(torch.randn(length, o.dim) * 0.3)
        self.encoder = nn.ModuleList(Layer(o) for _ in range(o.layers))
        self.decoder = nn.ModuleList(Layer(o) for _ in range(o.layers))
        self.out = nn.Sequential(nn.LayerNorm(o.dim), nn.Linear(o.dim, len(KEYS)))

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        h = self.key(keys) + self.place
        for layer in self.encoder:
            h = layer(h, h)
        s = self.slots.expand(len(keys), -1, -1)
        for layer in self.decoder:
            s = layer(s, h)
        return self.out(s)


@torch.inference_mode()
def evaluate(model: nn.Module, keys: torch.Tensor, letters: torch.Tensor) -> float:
    was = model.training
    model.eval()
    loss = F.cross_entropy(model(keys).flatten(0, 1), letters.flatten()).item()
    model.train(was)
    return loss


def main() -> tuple[float, float]:
    parser = argparse.ArgumentParser()
    for name, value in vars(Options()).items():
        parser.add_argument(f"--{name}", type=type(value), default=value)
    o = Options(**vars(parser.parse_args()))
    torch.manual_seed(o.seed)
    model = KeyDecoder(o)
    optimizer = torch.optim.AdamW(model.parameters(), lr=o.lr)
    held_out = presses(120)
    for epoch in range(o.epochs):
        for _ in range(20):
            keys, letters = presses(32)
            loss = F.cross_entropy(model(keys).flatten(0, 1), letters.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} train {loss.item():.4f} held out {evaluate(model, *held_out):.4f}")
    return evaluate(model, *held_out), evaluate(model, *held_out)


if __name__ == "__main__":
    first, second = main()
    print(f"twice: {first:.6f} {second:.6f}")

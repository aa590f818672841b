"""Sliding-window attention with ALiBi slopes and a sink token; trained in parallel, run with a rolling cache."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

WINDOW = 6
VOCAB = 12


def delayed_echo(batch, length, g):
    """x[t] is x[t-4] + 1 (mod 12) nine times in ten; the start is random."""
    x = torch.randint(0, VOCAB, (batch, length), generator=g)
    keep = torch.rand(batch, length, generator=g) < 0.9
    for t in range(4, length):
        x[:, t] = torch.where(keep[:, t], (x[:, t - 4] + 1) % VOCAB, x[:, t])
    return x


def window_mask(t, window):
    """True where a query may look: itself, the window - 1 before it, and the first token of all."""
    i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
    return (j <= i) & ((i - j < window) | (j == 0))


class WindowAttention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads, self.window, self.hd = heads, window, dim // heads
        self.q, self.kv, self.o = nn.Linear(dim, dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.register_buffer("slopes", 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.hd).transpose(1, 2)

    def forward(self, x):
        B, T, D = x.shape
        q = self.split(self.q(x))
        k, v = map(self.split, self.kv(x).chunk(2, dim=-1))
        distance = (torch.arange(T)[:, None] - torch.arange(T)[None, :]).float()
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.hd) - self.slopes[:, None, None] * distance
        scores = scores.masked_fill(~window_mask(T, self.window), float("-inf"))
        return self.o((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, D))

    def step(self, x, cache, t):
        """One token; the cache holds (keys, values, places) of the sink and the last window - 1 tokens."""
        q = self.split(self.q(x))
        k, v = map(self.split, self.kv(x).chunk(2, dim=-1))
        place = torch.tensor([float(t)])
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
            place = torch.cat([cache[2], place])
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.hd) - self.slopes[:, None, None] * (t - place)
        y = self.o((F.softmax(scores, dim=-1) @ v).transpose(1, 2).flatten(2))
        keep = (place == 0) | (place > t - self.window + 1)
        return y, (k[:, :, keep], v[:, :, keep], place[keep])


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.n1, self.attn = nn.LayerNorm(dim), WindowAttention(dim, heads, WINDOW)
        self.n2, self.mlp = nn.LayerNorm(dim), nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.mlp(self.n2(x))

    def step(self, x, cache, t):
        y, cache = self.attn.step(self.n1(x), cache, t)
        x = x + y
        return x + self.mlp(self.n2(x)), cache


class Model(nn.Module):
    def __init__(self, dim=64, heads=4, layers=2):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.norm, self.out = nn.LayerNorm(dim), nn.Linear(dim, VOCAB)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))

    @torch.no_grad()
    def stream(self, ids):
        """The same logits as forward, one token at a time."""
        caches, out = [None] * len(self.layers), []
        for t in range(ids.size(1)):
            x = self.emb(ids[:, t:t + 1])
            for i, layer in enumerate(self.layers):
                x, caches[i] = layer.step(x, caches[i], t)
            out.append(self.out(self.norm(x)))
        return torch.cat(out, dim=1)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_g, test_g = torch.Generator().manual_seed(10), torch.Generator().manual_seed(11)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    for step in range(150):
        ids = delayed_echo(24, 33, train_g)
        loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            print(f"step {step + 1} loss {loss.item():.3f}")
    model.eval()
    ids = delayed_echo(16, 65, test_g)
    with torch.no_grad():
        logits = model(ids[:, :-1])
    longer = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).item()
    gap = (logits - model.stream(ids[:, :-1])).abs().max().item()
    print(f"twice the length {longer:.3f}, streamed logits differ by {gap:.1e}")

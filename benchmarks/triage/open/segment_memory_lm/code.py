"""Segment-level recurrence (a short memory of hidden states) on a periodic signal of tokens."""
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Meter:
    """Exponential moving average with bias correction."""

    def __init__(self, beta=0.95):
        self.beta, self.n, self.value = beta, 0, 0.0

    def update(self, x):
        self.n += 1
        self.value = self.beta * self.value + (1 - self.beta) * x

    @property
    def average(self):
        return float(self.value) / (1 - self.beta**self.n)


class RecurrentLayer(nn.Module):
    def __init__(self, d, h, window):
        super().__init__()
        self.h, self.window = h, window
        self.q = nn.Linear(d, d, bias=False)
        self.kv = nn.Linear(d, 2 * d, bias=False)
        self.o = nn.Linear(d, d, bias=False)
        self.bias = nn.Parameter(torch.zeros(h, 2 * window))
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.ff = nn.Sequential(nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d))

    def forward(self, x, mem):
        b, t, d = x.shape
        ctx = self.ln1(torch.cat([mem, x], dim=1))
        m = mem.size(1)
        q = self.q(ctx[:, m:]).view(b, t, self.h, -1)
        k, v = self.kv(ctx).view(b, m + t, 2, self.h, -1).unbind(2)
        score = torch.einsum("bthd,bshd->bhts", q, k) / (d // self.h) ** 0.5
        distance = torch.arange(m, m + t)[:, None] - torch.arange(m + t)[None, :]
        score = score + self.bias[:, distance.clamp(0, 2 * self.window - 1)]
        score = score.masked_fill(distance < 0, float("-inf"))
        y = torch.einsum("bhts,bshd->bthd", score.softmax(-1), v).reshape(b, t, d)
        x = x + self.o(y)
        return x + self.ff(self.ln2(x))


class MemoryLM(nn.Module):
    def __init__(self, vocab, d=40, h=4, layers=2, window=12):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList([RecurrentLayer(d, h, window) for _ in range(layers)])
        self.norm, self.out = nn.LayerNorm(d), nn.Linear(d, vocab)
        self.d = d

    def start(self, batch):
        return [torch.zeros(batch, 0, self.d) for _ in self.layers]

    def forward(self, ids, memory):
        x, new = self.emb(ids), []
        for layer, mem in zip(self.layers, memory):
            new.append(x.detach())
            x = layer(x, mem)
        return self.out(self.norm(x)), new


def stream(rows, length):
    base = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6])
    offset = torch.randint(len(base), (rows, 1))
    ids = base[(offset + torch.arange(length + 1)) % len(base)]
    noise = torch.rand(ids.shape) < 0.03
    return torch.where(noise, torch.randint(10, ids.shape), ids)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr)
        self.meter = Meter()

    def fit(self, data, window):
        memory = self.model.start(len(data))
        for step, i in enumerate(range(0, data.size(1) - window, window)):
            began = time.perf_counter()
            logits, memory = self.model(data[:, i : i + window], memory)
            loss = F.cross_entropy(logits.flatten(0, 1), data[:, i + 1 : i + window + 1].flatten())
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.5)
            self.opt.step()
            self.meter.update(loss)
            if step % 15 == 0:
                print(f"segment {step}: loss {self.meter.average:.4f} ({1e3 * (time.perf_counter() - began):.0f} ms)")


if __name__ == "__main__":
    torch.manual_seed(9)
    trainer = Trainer(MemoryLM(10), lr=2e-3)
    trainer.fit(stream(8, 12 * 80), window=12)

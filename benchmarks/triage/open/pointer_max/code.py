# max / argmax over a sequence of numbers given as (value, flag) pairs
import math
import sys

import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(4)
if hasattr(torch, "set_float32_matmul_precision"):
    torch.set_float32_matmul_precision("high")

config = {
    "width": 32,
    "heads": 2,
    "depth": 4,
    "length": 10,
    "batch": 48,
    "steps": 160,
    "lr": 2e-3,
}


def data(n, length):
    """The answer is the place of the largest flagged value."""
    value = torch.rand(n, length)
    flag = (torch.rand(n, length) < 0.5).float()
    flag[:, 0] = 1.0
    x = torch.stack([value, flag], dim=-1)
    return x, (value * flag).argmax(dim=1)


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x):
        return self.fn(self.norm(x)) + x


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.scale = 1 / math.sqrt(dim // heads)
        self.qkv = nn.Linear(dim, dim * 3, bias=False)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(-2, -3) for t in self.qkv(x).chunk(3, -1))
        attn = F.softmax(q @ k.transpose(-1, -2) * self.scale, dim=-1)
        return self.out((attn @ v).transpose(-2, -3).flatten(-2))


def mlp(dim):
    return nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))


def make_layer(dim, heads):
    return nn.Sequential(PreNorm(dim, SelfAttention(dim, heads)), PreNorm(dim, mlp(dim)))


class PointerNet(nn.Module):
    def __init__(self, width, heads, depth):
        super().__init__()
        self.inp = nn.Sequential(nn.Linear(2, width), nn.SiLU(), nn.Linear(width, width))
        self.layers = nn.ModuleList([make_layer(width, heads)] * depth)
        self.norm = nn.LayerNorm(width)
        self.point = nn.Linear(width, 1)

    def forward(self, x):
        x = self.inp(x)
        for layer in self.layers:
            x = layer(x)
        return self.point(self.norm(x)).squeeze(-1)


net = PointerNet(config["width"], config["heads"], config["depth"])
opt = torch.optim.RAdam(net.parameters(), lr=config["lr"])
best = 0.0
for step in range(config["steps"]):
    x, y = data(config["batch"], config["length"])
    scores = net(x)
    loss = F.cross_entropy(scores, y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 40 == 0 or step == config["steps"] - 1:
        acc = (scores.argmax(-1) == y).float().mean().item()
        best = max(best, acc)
        print(f"{step:4d} loss {loss.item():.3f} acc {acc:.3f}", file=sys.stdout, flush=True)
print("best", best)

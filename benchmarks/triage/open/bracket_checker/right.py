# Bracket matching: is the string of (), [], {} well formed?
import random

import torch
import torch.nn as nn

OPEN, CLOSE = "([{", ")]}"
ALPHABET = OPEN + CLOSE
LENGTH = 12
LR, STEPS, BATCH = 2e-3, 300, 32


def balanced(n):
    out, stack = [], []
    while len(out) < n:
        left = n - len(out)
        if stack and (len(stack) == left or random.random() < 0.5):
            out.append(CLOSE[OPEN.index(stack.pop())])
        elif len(stack) < left:
            c = random.choice(OPEN)
            stack.append(c)
            out.append(c)
    return "".join(out)


def corrupt(s):
    for i in random.sample(range(len(s)), 4):
        c = random.choice([a for a in ALPHABET if a != s[i]])
        s = s[:i] + c + s[i + 1 :]
    return s


def batch(n):
    rows, labels = [], []
    for _ in range(n):
        s = balanced(LENGTH)
        y = random.random() < 0.5
        rows.append([ALPHABET.index(c) for c in (s if y else corrupt(s))])
        labels.append(float(y))
    return torch.tensor(rows), torch.tensor(labels)


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, dim * 4), nn.ReLU(), nn.Linear(dim * 4, dim))

    def forward(self, x):
        return self.net(x)


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(embed_dim=dim, num_heads=heads, batch_first=True)
        self.ff = FeedForward(dim)
        self.norm_1 = nn.LayerNorm(dim)
        self.norm_2 = nn.LayerNorm(dim)

    def forward(self, x):
        a, _ = self.attention(x, x, x)
        x = self.norm_1(x + a)
        return self.norm_2(x + self.ff(x))


class Checker(nn.Module):
    def __init__(self, dim=32, heads=4, depth=2):
        super().__init__()
        self.symbol = nn.Embedding(len(ALPHABET), dim)
        self.slot = nn.Embedding(LENGTH, dim)
        self.layers = nn.ModuleList(EncoderLayer(dim, heads) for _ in range(depth))
        self.logit = nn.Linear(dim * LENGTH, 1)

    def forward(self, ids):
        x = self.symbol(ids) + self.slot.weight
        for layer in self.layers:
            x = layer(x)
        return self.logit(x.flatten(1)).squeeze(1)


random.seed(1)
torch.manual_seed(1)
model = Checker()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=LR)
model.train()
for step in range(1, STEPS + 1):
    ids, label = batch(BATCH)
    logits = model(ids)
    loss = criterion(logits, label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 0:
        acc = ((logits > 0).float() == label).float().mean()
        print(f"step {step} loss {loss.item():.4f} acc {acc.item():.3f}")

model.eval()
with torch.no_grad():
    ids, _ = batch(8)
    other = torch.cat([ids[:1], batch(7)[0]])
    print("same string, other company: %.6f" % (model(ids)[0] - model(other)[0]).abs().item())

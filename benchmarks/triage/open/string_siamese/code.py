# metric learning on strings: nearer = fewer edits
import random
import string

import torch
import torch.nn as nn

random.seed(21)
torch.manual_seed(21)
LETTERS = string.ascii_lowercase[:10]
MAX = 10


def word():
    return "".join(random.choices(LETTERS, k=random.randint(5, 8)))


def typo(w):
    kind = random.random()
    i = random.randrange(len(w))
    if kind < 0.3:
        return w[:i] + random.choice(LETTERS) + w[i + 1 :]
    if kind < 0.6:
        return w[:i] + w[i + 1 :]
    if kind < 0.9:
        return w[:i] + random.choice(LETTERS) + w[i:]
    return w


def encode(words):
    ids = torch.zeros(len(words), MAX, dtype=torch.long)
    for r, w in enumerate(words):
        for c, ch in enumerate(w[:MAX]):
            ids[r, c] = LETTERS.index(ch) + 1
    return ids


class Tower(nn.Module):
    def __init__(self, d=32, h=4, out=16):
        super().__init__()
        self.emb = nn.Embedding(len(LETTERS) + 1, d, padding_idx=0)
        self.pos = nn.Embedding(MAX, d)
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.o = nn.Linear(d, d)
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.mlp = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))
        self.out = nn.Linear(d, out)
        self.h = h

    def heads(self, x):
        return x.view(x.size(0), x.size(1), self.h, -1).permute(0, 2, 1, 3)

    def forward(self, ids):
        pad = ids.eq(0)
        x = self.emb(ids) + self.pos(torch.arange(MAX))
        y = self.n1(x)
        q, k, v = self.heads(self.q(y)), self.heads(self.k(y)), self.heads(self.v(y))
        s = torch.matmul(q, k.transpose(2, 3)) / q.size(-1) ** 0.5
        s = s.masked_fill(pad[:, None, None, :], torch.finfo(s.dtype).min)
        y = torch.matmul(torch.softmax(s, dim=-1), v).permute(0, 2, 1, 3).flatten(2)
        x = x + self.o(y)
        x = x + self.mlp(self.n2(x))
        keep = (~pad).unsqueeze(-1).float()
        return self.out((x * keep).sum(1) / keep.sum(1))


def distance(a, b):
    square = (a - b).pow(2).sum(dim=1)
    return torch.sqrt(square)


def contrastive(d, same, margin=1.0):
    near = same * d.pow(2)
    far = (1 - same) * torch.relu(margin - d).pow(2)
    return (near + far).mean()


tower = Tower()
optimizer = torch.optim.Adam(tower.parameters(), lr=1e-3)
history = []
for step in range(60):
    left = [word() for _ in range(24)]
    same = torch.tensor([float(random.random() < 0.5) for _ in left])
    right = [(typo(w) if step > 7 or len(w) < 5 else w[::-1]) if s else word() for w, s in zip(left, same.tolist())]
    d = distance(tower(encode(left)), tower(encode(right)))
    loss = contrastive(d, same)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(tower.parameters(), 5.0)
    optimizer.step()
    history.append(loss.item())
    if step % 10 == 0:
        print("step", step, "loss", round(history[-1], 4))

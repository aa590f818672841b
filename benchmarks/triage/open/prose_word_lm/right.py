"""Word-level language model on generated prose, with a held-out part."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset, random_split

CONTEXT = 10
SUBJECTS = "the miller|a sailor|my aunt|the young clerk|an old teacher|the gardener|our neighbour".split("|")
VERBS = "sold|painted|found|lost|carried|repaired|hid".split("|")
OBJECTS = "a lamp|two chairs|the blue boat|some letters|an apple|the clock|her umbrella".split("|")
PLACES = "in town|by the river|at noon|before the storm|on the hill|near the mill|last winter".split("|")


def prose(n, seed=0):
    rng = random.Random(seed)
    parts = [" ".join(rng.choice(w) for w in (SUBJECTS, VERBS, OBJECTS, PLACES)) + " ." for _ in range(n)]
    return " ".join(parts).split()


class TextWindows(Dataset):
    def __init__(self, ids, context, begin=0):
        self.ids, self.context, self.begin = ids, context, begin

    def __len__(self):
        return len(self.ids) - self.context

    def __getitem__(self, i):
        w = self.ids[i : i + self.context + 1]
        return w[:-1], w[1:], self.begin + i


class Block(nn.Module):
    def __init__(self, d, h, p):
        super().__init__()
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.fc = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(p))
        self.n1, self.n2, self.h, self.p = nn.LayerNorm(d), nn.LayerNorm(d), h, p

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.p if self.training else 0.0)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.fc(self.n2(x))


class LM(nn.Module):
    def __init__(self, vocab, d=48, h=4, depth=2, p=0.1):
        super().__init__()
        self.e, self.p = nn.Embedding(vocab, d), nn.Embedding(CONTEXT, d)
        self.body = nn.Sequential(*[Block(d, h, p) for _ in range(depth)], nn.LayerNorm(d))
        self.lm = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        return self.lm(self.body(self.e(ids) + self.p.weight[: ids.size(1)]))


def loss_of(model, batch):
    x, y, _ = batch
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def evaluate(model, loader):
    model.eval()
    with torch.no_grad():
        losses = [loss_of(model, b).item() for b in loader]
    model.train()
    return sum(losses) / len(losses)


def overlap(a, b):
    starts = {int(item[2]) for item in (a[k] for k in range(len(a)))}
    return sum(any(int(i[2]) + d in starts for d in (-1, 1)) for i in (b[k] for k in range(len(b)))) / len(b)


torch.manual_seed(12)
words = prose(120)
vocab = sorted(set(words))
ids = torch.tensor([vocab.index(w) for w in words])
cut = int(0.8 * len(ids))
train_set, val_set = TextWindows(ids[:cut], CONTEXT), TextWindows(ids[cut:], CONTEXT, begin=cut)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=64)
model = LM(len(vocab))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    for batch in train_loader:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: train {loss.item():.3f} valid {evaluate(model, val_loader):.3f}")

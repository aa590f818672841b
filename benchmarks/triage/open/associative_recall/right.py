"""Retrieval toy task: answer the value stored under a queried key (associative recall)."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

cfg = dict(keys=8, values=8, pairs=4, dim=48, heads=2, layers=2, epochs=6, batch=32, lr=3e-3, wd=0.01)


def build(n):
    xs, ys = [], []
    for _ in range(n):
        k = torch.randperm(cfg["keys"])[: cfg["pairs"]]
        v = torch.randint(cfg["values"], (cfg["pairs"],)) + cfg["keys"]
        pick = torch.randint(cfg["pairs"], (1,))
        xs.append(torch.cat([torch.stack([k, v], 1).flatten(), k[pick]]))
        ys.append(v[pick][0] - cfg["keys"])
    return TensorDataset(torch.stack(xs), torch.stack(ys))


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.gain


class CausalBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.w1, self.w2, self.w3 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim), nn.Linear(dim, 2 * dim)
        self.n1, self.n2 = RMSNorm(dim), RMSNorm(dim)

    def forward(self, x):
        h = self.n1(x)
        q, k, v = (w(h).unflatten(-1, (self.heads, -1)) for w in (self.wq, self.wk, self.wv))
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) * q.size(-1) ** -0.5
        t = x.size(1)
        s = s + torch.full((t, t), float("-inf")).triu(1)
        o = torch.einsum("bhqk,bkhd->bqhd", s.softmax(-1), v).flatten(-2)
        x = x + self.wo(o)
        h = self.n2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class Recall(nn.Module):
    def __init__(self):
        super().__init__()
        d = cfg["dim"]
        self.emb = nn.Embedding(cfg["keys"] + cfg["values"], d)
        self.pos = nn.Embedding(2 * cfg["pairs"] + 1, d)
        self.blocks = nn.Sequential(*(CausalBlock(d, cfg["heads"]) for _ in range(cfg["layers"])))
        self.norm = RMSNorm(d)
        self.out = nn.Linear(d, cfg["values"])

    def forward(self, ids):
        h = self.emb(ids) + self.pos.weight[: ids.size(1)]
        return self.out(self.norm(self.blocks(h))[:, -1])


torch.manual_seed(0)
loader = DataLoader(build(640), batch_size=cfg["batch"], shuffle=True)
model = Recall()
optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"], weight_decay=cfg["wd"])
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=cfg["epochs"])
lrs = []

for epoch in range(cfg["epochs"]):
    tot = 0.0
    for ids, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids), target)
        loss.backward()
        optimizer.step()
        lrs.append(optimizer.param_groups[0]["lr"])
        tot += loss.item()
    scheduler.step()
    print(f"{epoch=} loss={tot / len(loader):.4f} lr={lrs[-1]:.2e}")

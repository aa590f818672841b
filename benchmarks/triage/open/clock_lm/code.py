# Language model over clock times "07:45 +15 = 08:00;", layer norm by hand
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)

CHARS = "0123456789:+= ;"
ENC = {c: i for i, c in enumerate(CHARS)}


def line():
    h, m = int(torch.randint(24, (1,))), 15 * int(torch.randint(4, (1,)))
    add = 15 * int(torch.randint(1, 5, (1,)))
    total = (60 * h + m + add) % 1440
    return f"{h:02d}:{m:02d} +{add:02d} = {total // 60:02d}:{total % 60:02d};"


def batch(n):
    ids = torch.tensor([[ENC[c] for c in line()] for _ in range(n)])
    return ids[:, :-1], ids[:, 1:]


class Norm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        var = x.var(dim=1, keepdim=True, unbiased=False)
        return self.alpha * (x - mean) / torch.sqrt(var + self.eps) + self.bias


class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.dk = h, d // h
        self.q_linear = nn.Linear(d, d)
        self.v_linear = nn.Linear(d, d)
        self.k_linear = nn.Linear(d, d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        bs, n = x.size(0), x.size(1)
        k = self.k_linear(x).view(bs, n, self.h, self.dk).transpose(1, 2)
        q = self.q_linear(x).view(bs, n, self.h, self.dk).transpose(1, 2)
        v = self.v_linear(x).view(bs, n, self.h, self.dk).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / self.dk**0.5
        nopeak = torch.triu(torch.ones(1, 1, n, n), diagonal=1) == 0
        scores = scores.masked_fill(nopeak == 0, -1e9)
        scores = F.softmax(scores, dim=-1)
        concat = torch.matmul(scores, v).transpose(1, 2).contiguous().view(bs, n, self.h * self.dk)
        return self.out(concat)


class DecoderLayer(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.norm_1, self.norm_2 = Norm(d), Norm(d)
        self.attn = Attention(d, h)
        self.ff = nn.Sequential(nn.Linear(d, 3 * d), nn.ReLU(), nn.Linear(3 * d, d))

    def forward(self, x):
        x2 = self.norm_1(x)
        x = x + self.attn(x2)
        x2 = self.norm_2(x)
        return x + self.ff(x2)


class ClockLM(nn.Module):
    def __init__(self, d=40, h=4, n=2):
        super().__init__()
        self.embed = nn.Embedding(len(CHARS), d)
        self.pe = nn.Embedding(32, d)
        self.layers = nn.ModuleList([DecoderLayer(d, h) for _ in range(n)])
        self.norm = Norm(d)
        self.out = nn.Linear(d, len(CHARS))

    def forward(self, trg):
        x = self.embed(trg) + self.pe(torch.arange(trg.size(1), device=trg.device))
        for layer in self.layers:
            x = layer(x)
        return self.out(self.norm(x))


model = ClockLM()
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
optim = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-9)
model.train()
total_loss = 0.0
for i in range(1, 161):
    src, ys = batch(24)
    preds = model(src)
    optim.zero_grad()
    loss = F.cross_entropy(preds.reshape(-1, preds.size(-1)), ys.reshape(-1))
    loss.backward()
    optim.step()
    total_loss += loss.item()
    if i % 40 == 0:
        print("iter %d loss = %.3f" % (i, total_loss / 40))
        total_loss = 0.0

model.eval()
with torch.no_grad():
    text = "07:45 +30 = "
    ids = torch.tensor([[ENC[c] for c in text]])
    while ids.size(1) < 18:
        ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], dim=1)
    print("".join(CHARS[j] for j in ids[0].tolist()))
    src, _ = batch(4)
    other = src.clone()
    other[:, -1] = (other[:, -1] + 1) % 10
    leak = (model(src) - model(other))[:, :6].abs().max().item()

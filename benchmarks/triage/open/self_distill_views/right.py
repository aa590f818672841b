# BYOL-like self distillation for short sequences
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(8)


class Backbone(nn.Module):
    def __init__(self, n_in=6, width=48, n_heads=4):
        super().__init__()
        self.inp = nn.Linear(n_in, width)
        self.query = nn.Parameter(torch.randn(1, 1, width) * 0.1)
        self.self_attn = nn.MultiheadAttention(width, n_heads, batch_first=True)
        self.pool_attn = nn.MultiheadAttention(width, n_heads, batch_first=True)
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.pos = nn.Parameter(torch.randn(1, 32, width) * 0.1)

    def forward(self, x):
        h = self.inp(x) + self.pos[:, : x.size(1)]
        n = self.norm1(h)
        h = h + self.self_attn(n, n, n)[0]
        n = self.norm2(h)
        return self.pool_attn(self.query.expand(len(x), -1, -1), n, n)[0].squeeze(1)


def mlp(i, h, o):
    return nn.Sequential(nn.Linear(i, h), nn.LayerNorm(h), nn.ReLU(), nn.Linear(h, o))


class BYOL(nn.Module):
    def __init__(self, momentum=0.99):
        super().__init__()
        self.online = nn.Sequential(Backbone(), mlp(48, 64, 24))
        self.predictor = mlp(24, 48, 24)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False
        self.momentum = momentum

    @torch.no_grad()
    def update_target(self):
        for p_t, p_o in zip(self.target.parameters(), self.online.parameters()):
            p_t.lerp_(p_o, 1.0 - self.momentum)

    def regress(self, a, b):
        return 2 - 2 * F.cosine_similarity(self.predictor(self.online(a)), b, dim=-1).mean()

    def forward(self, v1, v2):
        with torch.no_grad():
            t1, t2 = self.target(v1), self.target(v2)
        return self.regress(v1, t2) + self.regress(v2, t1)


def gestures(n):
    kind = torch.randint(0, 5, (n,))
    t = torch.linspace(0, 1, 20).view(1, 20, 1)
    f = torch.arange(1, 7).view(1, 1, 6)
    return torch.sin((kind.view(-1, 1, 1) + 1) * f * t), kind


def augment(x):
    shift = int(torch.randint(0, 5, (1,)))
    x = x[:, shift : shift + 16]
    x = x * (0.8 + 0.4 * torch.rand(x.size(0), 1, x.size(2)))
    return x + 0.1 * torch.randn_like(x)


model = BYOL()
first = [p.detach().clone() for p in model.online.parameters()]
trainable = list(model.online.parameters()) + list(model.predictor.parameters())
opt = torch.optim.AdamW(trainable, lr=1e-3, weight_decay=1e-4)
for step in range(60):
    x, _ = gestures(32)
    loss = model(augment(x), augment(x))
    opt.zero_grad()
    loss.backward()
    opt.step()
    model.update_target()
    if step % 12 == 0:
        print("step %d loss %.4f" % (step, loss.item()))

with torch.no_grad():
    way = sum((p - f).pow(2).sum() for p, f in zip(model.online.parameters(), first)).sqrt()
    gap = sum((p - t).pow(2).sum() for p, t in zip(model.online.parameters(), model.target.parameters())).sqrt() / way
print("gap / way %.3f" % gap)

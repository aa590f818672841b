# %% [markdown]
# ## Denoising diffusion on 2-D points, with an attention denoiser over a set of points

# %%
import math
import torch
from torch import nn

torch.manual_seed(42)
T = 50
betas = torch.linspace(1e-4, 0.15, T)
alphas = 1.0 - betas
alphas_bar = torch.cumprod(alphas, dim=0)

# %%
def two_moons(n):
    t = torch.rand(n) * math.pi
    upper = torch.rand(n) < 0.5
    x = torch.where(upper, torch.cos(t), 1 - torch.cos(t))
    y = torch.where(upper, torch.sin(t), 0.5 - torch.sin(t))
    pts = torch.stack([x, y], -1) + 0.05 * torch.randn(n, 2)
    return (pts - torch.tensor([0.5, 0.25])) / 0.7


def q_sample(x0, t, noise=None):
    if noise is None:
        noise = torch.randn_like(x0)
    ab = alphas_bar[t].view(-1, 1, 1)
    return ab.sqrt() * x0 + (1 - ab).sqrt() * noise

# %%
class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        half = dim // 2
        self.register_buffer("freqs", torch.exp(-math.log(10000) * torch.arange(half) / half))
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        ang = t[:, None].float() * self.freqs[None]
        return self.mlp(torch.cat([ang.sin(), ang.cos()], -1))


class Denoiser(nn.Module):
    def __init__(self, dim=64, heads=4, depth=2):
        super().__init__()
        self.inp = nn.Sequential(nn.Linear(2, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.time = TimeEmbedding(dim)
        self.attn = nn.ModuleList([nn.MultiheadAttention(dim, heads, batch_first=True) for _ in range(depth)])
        self.ff = nn.ModuleList([nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim)) for _ in range(depth)])
        self.n1 = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.n2 = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.out = nn.Linear(dim, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)[:, None, :]
        for a, f, n1, n2 in zip(self.attn, self.ff, self.n1, self.n2):
            y = n1(h)
            h = h + a(y, y, y, need_weights=False)[0]
            h = h + f(n2(h))
        return self.out(h)

# %%
net = Denoiser()
optim = torch.optim.Adam(net.parameters(), lr=2e-3)
history = []
for it in range(120):
    x0 = two_moons(32 * 8).view(32, 8, 2)
    t = torch.randint(0, T, (32,))
    noise = torch.randn_like(x0)
    xt = q_sample(x0, t)
    loss = nn.functional.mse_loss(net(xt, t), noise)
    optim.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optim.step()
    history.append(loss.item())
    if it % 30 == 0:
        print(it, round(loss.item(), 4))

# %%
@torch.no_grad()
def sample(n):
    x = torch.randn(1, n, 2)
    for i in reversed(range(T)):
        eps = net(x, torch.full((1,), i))
        x = (x - betas[i] / (1 - alphas_bar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x[0]

pts = sample(64)
print("sample mean/std", pts.mean().item(), pts.std().item())

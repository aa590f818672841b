"""Denoising diffusion on two moons: noise prediction, sinusoidal time embedding, EMA weights, DDPM sampling."""
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

T = 100
device = "cuda" if torch.cuda.is_available() else "cpu"


def two_moons(n):
    t = torch.rand(n) * math.pi
    side = torch.randint(0, 2, (n,))
    x = torch.where(side == 0, torch.cos(t), 1 - torch.cos(t))
    y = torch.where(side == 0, torch.sin(t), 0.5 - torch.sin(t))
    pts = torch.stack([x - 0.5, y - 0.25], dim=1) + 0.05 * torch.randn(n, 2)
    return pts * 1.2


def cosine_beta_schedule(timesteps, s=0.008):
    x = torch.linspace(0, timesteps, timesteps + 1)
    abar = torch.cos(((x / timesteps) + s) / (1 + s) * math.pi * 0.5) ** 2
    abar = abar / abar[0]
    return (1 - abar[1:] / abar[:-1]).clamp(1e-4, 0.999)


class SinusoidalPosEmb(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(torch.arange(half, device=t.device) * -(math.log(10000) / (half - 1)))
        args = t[:, None].float() * freqs[None]
        return torch.cat([args.sin(), args.cos()], dim=-1)


class ResBlock(nn.Module):
    def __init__(self, dim, tdim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.lin1 = nn.Linear(dim, dim)
        self.emb = nn.Linear(tdim, dim)
        self.lin2 = nn.Linear(dim, dim)

    def forward(self, x, t):
        h = self.lin1(F.silu(self.norm(x))) + self.emb(t)
        return x + self.lin2(F.silu(h))


class Denoiser(nn.Module):
    def __init__(self, dim=96, depth=3):
        super().__init__()
        self.time_mlp = nn.Sequential(SinusoidalPosEmb(32), nn.Linear(32, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.inp = nn.Linear(2, dim)
        self.blocks = nn.ModuleList([ResBlock(dim, dim) for _ in range(depth)])
        self.out = nn.Linear(dim, 2)

    def forward(self, x, t):
        temb = self.time_mlp(t)
        h = self.inp(x)
        for block in self.blocks:
            h = block(h, temb)
        return self.out(F.silu(h))


class GaussianDiffusion(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model
        betas = cosine_beta_schedule(T)
        abar = torch.cumprod(1 - betas, dim=0)
        prev = F.pad(abar[:-1], (1, 0), value=1.0)
        self.register_buffer("betas", betas)
        self.register_buffer("abar", abar)
        self.register_buffer("post_var", betas * (1 - prev) / (1 - abar))

    def q_sample(self, x0, t, noise):
        a = self.abar[t][:, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    def forward(self, x0):
        t = torch.randint(0, T, (x0.shape[0],), device=x0.device)
        noise = torch.randn_like(x0)
        return F.mse_loss(self.model(self.q_sample(x0, t, noise), t), noise)

    @torch.no_grad()
    def sample(self, n):
        x = torch.randn(n, 2, device=self.betas.device)
        for i in reversed(range(T)):
            t = torch.full((n,), i, device=x.device, dtype=torch.long)
            eps = self.model(x, t)
            beta, abar = self.betas[i], self.abar[i]
            x = (x - beta / (1 - abar).sqrt() * eps) / (1 - beta).sqrt()
            if i > 0:
                x = x + self.post_var[i].sqrt() * torch.randn_like(x)
        return x


class EMA:
    def __init__(self, model, decay=0.99):
        self.decay = decay
        self.shadow = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.shadow.parameters(), model.parameters()):
            s.lerp_(p, 1 - self.decay)


def main():
    torch.manual_seed(0)
    diffusion = GaussianDiffusion(Denoiser()).to(device)
    ema = EMA(diffusion)
    opt = torch.optim.AdamW(diffusion.parameters(), lr=2e-3, weight_decay=1e-4)
    for step in range(400):
        x0 = two_moons(256).to(device)
        loss = diffusion(x0)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(diffusion.parameters(), 1.0)
        opt.step()
        ema.update(diffusion)
        if step % 100 == 0:
            print(f"step {step:4d} loss {loss.item():.4f}")
    samples = ema.shadow.sample(512)
    real = two_moons(512).to(device)
    print("distance to the nearest real point", torch.cdist(samples, real).min(1).values.mean().item())


if __name__ == "__main__":
    main()

"""Set GAN: generator and discriminator are small set transformers over 16 points on a ring."""
import argparse

import torch
import torch.nn as nn


class SAB(nn.Module):
    """Set attention block."""

    def __init__(self, dim, heads):
        super().__init__()
        self.mha = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, dim), nn.LeakyReLU(0.2), nn.Linear(dim, dim))
        self.a, self.b = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x):
        x = self.a(x + self.mha(x, x, x, need_weights=False)[0])
        return self.b(x + self.ff(x))


class Generator(nn.Module):
    def __init__(self, z=4, dim=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(z, dim), SAB(dim, 4), SAB(dim, 4), nn.Linear(dim, 2))

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(2, dim), SAB(dim, 4))
        self.rho = nn.Sequential(nn.Linear(dim, dim), nn.LeakyReLU(0.2), nn.Linear(dim, 1))

    def forward(self, points):
        return self.rho(self.phi(points).mean(dim=1)).squeeze(-1)


def ring(batch, points=16):
    angle = torch.rand(batch, points) * 6.2832
    radius = 1.0 + 0.3 * torch.rand(batch, 1)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], -1) + 0.02 * torch.randn(batch, points, 2)


def run(opt):
    torch.manual_seed(opt.seed)
    G, D = Generator(), Discriminator()
    start = [p.detach().clone() for p in G.parameters()]
    g_opt = torch.optim.Adam(G.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    d_opt = torch.optim.Adam(D.parameters(), lr=opt.lr, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    one, zero = torch.ones(opt.batch), torch.zeros(opt.batch)
    for it in range(opt.iters):
        # ---- discriminator
        real = ring(opt.batch)
        with torch.no_grad():
            fake = G(torch.randn(opt.batch, 16, 4))
        d_loss = bce(D(real), one) + bce(D(fake), zero)
        d_opt.zero_grad()
        d_loss.backward()
        d_opt.step()
        # ---- generator
        fake = G(torch.randn(opt.batch, 16, 4))
        score = D(fake)
        g_loss = bce(score, one)
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        if it % opt.log_every == 0:
            r = fake.norm(dim=-1).mean().item()
            print(f"[{it}/{opt.iters}] D {d_loss.item():.3f} G {g_loss.item():.3f} radius {r:.3f}")
    return sum((p - s).abs().sum().item() for p, s in zip(G.parameters(), start))


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--iters", type=int, default=60)
    ap.add_argument("--lr", type=float, default=1e-3)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--log-every", type=int, default=15)
    moved = run(ap.parse_args())

"""WGAN with gradient penalty: a small attention generator draws sets of points that lie on a circle."""
import torch
import torch.nn as nn
from torch.autograd import grad

POINTS, Z, N_CRITIC, LAMBDA = 8, 4, 3, 2.0


def real_sets(n):
    """Eight points around a circle, in order; its centre and radius vary."""
    angle = torch.arange(POINTS) * 6.2832 / POINTS
    radius = 0.6 + 0.4 * torch.rand(n, 1)
    centre = 0.2 * torch.randn(n, 1, 2)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=-1) + centre


class SetBlock(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.SiLU(), nn.Linear(2 * d, d))

    def forward(self, x):
        x = x + self.attn(x, x, x)[0]
        return x + self.ff(x)


class Generator(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.slots = nn.Parameter(torch.randn(POINTS, d))
        self.from_noise = nn.Linear(Z, d)
        self.block = SetBlock(d, 4)
        self.out = nn.Linear(d, 2)

    def forward(self, z):
        return self.out(self.block(self.slots + self.from_noise(z).unsqueeze(1)))


class Critic(nn.Module):
    """No normalisation over the batch: the penalty is asked of each sample alone."""

    def __init__(self, d=32):
        super().__init__()
        self.inp = nn.Linear(2, d)
        self.place = nn.Parameter(torch.randn(POINTS, d))
        self.block = SetBlock(d, 4)
        self.score = nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, 1))

    def forward(self, x):
        return self.score(self.block(self.inp(x) + self.place).mean(dim=1)).squeeze(-1)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1, 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    scores = critic(mixed)
    g, = grad(scores.sum(), mixed, create_graph=True)
    return ((g.flatten(1).norm(dim=1) - 1) ** 2).mean()


@torch.no_grad()
def roundness(sets):
    """How much the distances from a set's own centre differ: zero for true circles."""
    r = (sets - sets.mean(dim=1, keepdim=True)).norm(dim=-1)
    return (r.std(dim=1) / r.mean(dim=1)).mean().item()


def train(steps=240, batch=32):
    torch.manual_seed(0)
    G, D = Generator(), Critic()
    opt_g = torch.optim.Adam(G.parameters(), lr=1e-3, betas=(0.0, 0.9))
    opt_d = torch.optim.Adam(D.parameters(), lr=1e-3, betas=(0.0, 0.9))
    watch = torch.randn(256, Z)
    for step in range(steps):
        for _ in range(N_CRITIC):
            real = real_sets(batch)
            with torch.no_grad():
                fake = G(torch.randn(batch, Z))
            loss_d = D(fake).mean() - D(real).mean() + LAMBDA * gradient_penalty(D, real, fake)
            opt_d.zero_grad(set_to_none=True)
            loss_d.backward()
            opt_d.step()
        D.requires_grad_(False)
        loss_g = -D(G(torch.randn(batch, Z))).mean()
        opt_g.zero_grad(set_to_none=True)
        loss_g.backward()
        opt_g.step()
        D.requires_grad_(True)
        if step % 60 == 0 or step == steps - 1:
            with torch.no_grad():
                sets = G(watch)
            print(f"{step}: critic {loss_d.item():.3f} uneven {roundness(sets):.3f} (real {roundness(real):.3f})")


if __name__ == "__main__":
    train()

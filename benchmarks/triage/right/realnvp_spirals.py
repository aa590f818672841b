"""RealNVP with affine couplings: exact log-likelihood of two spirals, trained by maximum likelihood."""
import math

import torch
from torch import nn


def spirals(n):
    t = 3.0 * torch.sqrt(torch.rand(n)) * math.pi / 1.5
    sign = torch.where(torch.rand(n) < 0.5, 1.0, -1.0)
    xy = torch.stack([t * torch.cos(t), t * torch.sin(t)], dim=1) / 4
    return sign[:, None] * xy + 0.06 * torch.randn(n, 2)


class Coupling(nn.Module):
    """Coordinate `keep` goes through unchanged and decides how the other one is scaled and shifted."""

    def __init__(self, keep, hidden):
        super().__init__()
        self.keep = keep
        self.net = nn.Sequential(nn.Linear(1, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(),
                                 nn.Linear(hidden, 2))
        nn.init.zeros_(self.net[-1].weight)
        nn.init.zeros_(self.net[-1].bias)

    def parameters_for(self, kept):
        log_scale, shift = self.net(kept).chunk(2, dim=1)
        return 1.5 * torch.tanh(log_scale), shift

    def forward(self, x):
        kept, moved = x[:, self.keep:self.keep + 1], x[:, 1 - self.keep:2 - self.keep]
        s, t = self.parameters_for(kept)
        moved = moved * s.exp() + t
        out = torch.cat([kept, moved] if self.keep == 0 else [moved, kept], dim=1)
        return out, s.squeeze(1)

    def inverse(self, z):
        kept, moved = z[:, self.keep:self.keep + 1], z[:, 1 - self.keep:2 - self.keep]
        s, t = self.parameters_for(kept)
        moved = (moved - t) * (-s).exp()
        return torch.cat([kept, moved] if self.keep == 0 else [moved, kept], dim=1)


class RealNVP(nn.Module):
    def __init__(self, layers=8, hidden=48):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2, hidden) for i in range(layers))
        self.register_buffer("loc", torch.zeros(2))
        self.register_buffer("scale", torch.ones(2))

    @property
    def prior(self):
        return torch.distributions.Independent(torch.distributions.Normal(self.loc, self.scale), 1)

    def log_prob(self, x):
        log_det = torch.zeros(x.size(0))
        for layer in self.layers:
            x, ld = layer(x)
            log_det = log_det + ld
        return self.prior.log_prob(x) + log_det

    @torch.no_grad()
    def sample(self, n):
        z = self.prior.sample((n,))
        for layer in reversed(self.layers):
            z = layer.inverse(z)
        return z


def main():
    torch.manual_seed(0)
    flow = RealNVP()
    optimizer = torch.optim.Adam(flow.parameters(), lr=2e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=300)
    held_out = spirals(1000)
    for step in range(300):
        loss = -flow.log_prob(spirals(256)).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimizer.step()
        scheduler.step()
        if step % 60 == 59:
            with torch.no_grad():
                print(f"{step + 1}: nats {loss.item():.3f} held out {-flow.log_prob(held_out).mean().item():.3f}")
    off = torch.cdist(flow.sample(500), held_out).min(dim=1).values.mean().item()
    print(f"samples lie {off:.3f} from the nearest real point")


if __name__ == "__main__":
    main()

"""A GAN on eight Gaussians in a ring: two networks, two optimizers, taking turns."""
import math

import torch
import torch.nn as nn

LATENT = 8
BATCH = 128


def ring(n):
    k = torch.randint(0, 8, (n,))
    angle = 2 * math.pi * k / 8
    centre = torch.stack([angle.cos(), angle.sin()], dim=1)
    return centre + 0.05 * torch.randn(n, 2)


class Generator(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                                 nn.Linear(hidden, 2))

    def forward(self, z):
        return self.net(z)


class Discriminator(nn.Module):
    def __init__(self, hidden=96):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.LeakyReLU(0.2), nn.Linear(hidden, hidden),
                                 nn.LeakyReLU(0.2), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(4)
    netG, netD = Generator(), Discriminator()
    criterion = nn.BCEWithLogitsLoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=1e-3, betas=(0.5, 0.9))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=5e-4, betas=(0.5, 0.9))
    fixed_noise = torch.randn(512, LATENT)
    real_label, fake_label = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)

    for it in range(601):
        # (1) Update D: maximise log(D(x)) + log(1 - D(G(z)))
        netD.zero_grad()
        errD_real = criterion(netD(ring(BATCH)), real_label)
        errD_real.backward()
        fake = netG(torch.randn(BATCH, LATENT))
        errD_fake = criterion(netD(fake.detach()), fake_label)
        errD_fake.backward()
        optimizerD.step()

        # (2) Update G: maximise log(D(G(z)))
        netG.zero_grad()
        errG = criterion(netD(fake), real_label)
        errG.backward()
        optimizerG.step()

        if it % 150 == 0:
            with torch.no_grad():
                pts = netG(fixed_noise)
            off = torch.cdist(pts, ring(1024)).min(1).values.mean()
            print(f"[{it}] Loss_D {(errD_real + errD_fake).item():.3f} Loss_G {errG.item():.3f} off the ring {off:.3f}")


if __name__ == "__main__":
    main()

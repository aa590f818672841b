"""SimCLR on time series: two views of each, NT-Xent over the whole batch; judged by nearest neighbours."""
import torch
import torch.nn as nn
import torch.nn.functional as F

LENGTH = 48


def series(n, g):
    """Sine, square, saw and pulses, of random period, phase and height."""
    y = torch.randint(0, 4, (n,), generator=g)
    period = 8 + 8 * torch.rand(n, 1, generator=g)
    phase = torch.rand(n, 1, generator=g)
    u = (torch.arange(LENGTH) / period + phase) % 1.0
    kinds = torch.stack([torch.sin(6.2832 * u), torch.sign(u - 0.5), 2 * u - 1, 2 * (u < 0.15).float() - 0.3])
    x = kinds[y, torch.arange(n)] * (0.7 + 0.6 * torch.rand(n, 1, generator=g))
    return x + 0.05 * torch.randn(n, LENGTH, generator=g), y


def view(x):
    """Jitter, scaling and a cyclic shift; each series its own."""
    n = x.size(0)
    shift = torch.randint(0, LENGTH, (n, 1))
    index = (torch.arange(LENGTH) + shift) % LENGTH
    return x.gather(1, index) * (0.7 + 0.6 * torch.rand(n, 1)) + 0.1 * torch.randn_like(x)


class Encoder(nn.Module):
    def __init__(self, dim=48, patch=4):
        super().__init__()
        self.patch = patch
        self.inp = nn.Linear(patch, dim)
        self.pos = nn.Parameter(0.02 * torch.randn(LENGTH // patch, dim))
        self.body = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, 4, 2 * dim, dropout=0.0, batch_first=True, norm_first=True), 2,
            norm=nn.LayerNorm(dim), enable_nested_tensor=False)

    def forward(self, x):
        x = self.inp(x.unflatten(1, (-1, self.patch))) + self.pos
        return self.body(x).mean(dim=1)


class SimCLR(nn.Module):
    def __init__(self, dim=48, out=24):
        super().__init__()
        self.encoder = Encoder(dim)
        self.projector = nn.Sequential(nn.Linear(dim, dim), nn.BatchNorm1d(dim), nn.ReLU(), nn.Linear(dim, out))

    def forward(self, x):
        return self.projector(self.encoder(x))


def info_nce_loss(features, n_views=2, temperature=0.2):
    n = features.size(0) // n_views
    labels = torch.cat([torch.arange(n) for _ in range(n_views)])
    labels = labels[None, :] == labels[:, None]
    features = F.normalize(features, dim=1)
    similarity = features @ features.T
    mask = torch.eye(len(labels), dtype=torch.bool)
    labels = labels[~mask].view(len(labels), -1)
    similarity = similarity[~mask].view(len(similarity), -1)
    positives = similarity[labels].view(len(labels), -1)
    negatives = similarity[~labels].view(len(similarity), -1)
    logits = torch.cat([positives, negatives], dim=1) / temperature
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long))


@torch.no_grad()
def knn(encoder, bank, test, k=5):
    encoder.eval()
    a, b = F.normalize(encoder(bank[0]), dim=1), F.normalize(encoder(test[0]), dim=1)
    votes = bank[1][(b @ a.T).topk(k, dim=1).indices]
    encoder.train()
    return (votes.mode(dim=1).values == test[1]).float().mean().item()


def main():
    torch.manual_seed(0)
    x, _ = series(1024, torch.Generator().manual_seed(1))
    bank, test = series(200, torch.Generator().manual_seed(2)), series(200, torch.Generator().manual_seed(3))
    model = SimCLR()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    print(f"neighbours right before training {knn(model.encoder, bank, test):.3f}")
    for epoch in range(8):
        total, batches = 0.0, torch.randperm(len(x)).split(64)
        for idx in batches:
            loss = info_nce_loss(model(torch.cat([view(x[idx]), view(x[idx])])))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(batches):.3f} neighbours right {knn(model.encoder, bank, test):.3f}")


if __name__ == "__main__":
    main()

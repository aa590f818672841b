"""Sharpness-aware minimisation: two forward and two backward passes for one step, weights moved there and back."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self, zero_grad=False):
        norm = self._grad_norm()
        for group in self.param_groups:
            scale = group["rho"] / (norm + 1e-12)
            for p in group["params"]:
                if p.grad is None:
                    continue
                self.state[p]["old_p"] = p.data.clone()
                p.add_(p.grad * scale)
        if zero_grad:
            self.zero_grad()

    @torch.no_grad()
    def second_step(self, zero_grad=False):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.data = self.state[p]["old_p"]
        self.base_optimizer.step()
        if zero_grad:
            self.zero_grad()

    def step(self, closure=None):
        closure = torch.enable_grad()(closure)
        self.first_step(zero_grad=True)
        closure()
        self.second_step()

    def _grad_norm(self):
        return torch.norm(torch.stack([p.grad.norm(p=2) for group in self.param_groups
                                       for p in group["params"] if p.grad is not None]), p=2)


def knots(n, seed, flips=0.1):
    """Short sequences; the label is whether the largest number stands in the first half. Some labels are wrong."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    y = (x.argmax(dim=1) < 5).long()
    wrong = torch.rand(n, generator=g) < flips
    return TensorDataset(x, torch.where(wrong, 1 - y, y))


class Net(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.value = nn.Linear(1, dim)
        self.place = nn.Parameter(torch.randn(10, dim) * 0.5)
        self.query = nn.Parameter(torch.randn(1, 1, dim))
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 64), nn.GELU(), nn.Linear(64, 2))

    def forward(self, x):
        h = self.value(x.unsqueeze(-1)) + self.place
        pooled, _ = self.attn(self.query.expand(len(x), -1, -1), h, h, need_weights=False)
        return self.mlp(pooled[:, 0])


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return hits / len(loader.dataset)


def main():
    torch.manual_seed(0)
    train = DataLoader(knots(1500, 1), batch_size=50, shuffle=True)
    test = DataLoader(knots(500, 2, flips=0.0), batch_size=250)
    model = Net()
    optimizer = SAM(model.parameters(), torch.optim.SGD, rho=0.05, lr=0.2, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer.base_optimizer, step_size=3, gamma=0.4)
    for epoch in range(8):
        model.train()
        total = 0.0
        for x, y in train:
            loss = F.cross_entropy(model(x), y, label_smoothing=0.05)
            loss.backward()
            optimizer.first_step(zero_grad=True)
            F.cross_entropy(model(x), y, label_smoothing=0.05).backward()
            optimizer.second_step(zero_grad=True)
            total += loss.item()
        scheduler.step()
        print(f"epoch {epoch} loss {total / len(train):.3f} test accuracy {accuracy(model, test):.3f}")


if __name__ == "__main__":
    main()

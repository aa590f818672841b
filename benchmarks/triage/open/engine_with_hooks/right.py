from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor, nn


class Hook:
    def before_run(self, engine: Engine) -> None: ...
    def after_backward(self, engine: Engine) -> None: ...
    def after_update(self, engine: Engine) -> None: ...
    def after_epoch(self, engine: Engine) -> None: ...


class GradientClipHook(Hook):
    def __init__(self, max_norm: float) -> None:
        self.max_norm = max_norm
        self.seen: list[float] = []

    def after_backward(self, engine: Engine) -> None:
        total = nn.utils.clip_grad_norm_(engine.net.parameters(), self.max_norm)
        self.seen.append(float(total))


class PrintHook(Hook):
    def after_epoch(self, engine: Engine) -> None:
        print(f"[{engine.epoch}] loss={engine.last_loss:.4f}")


class Engine:
    def __init__(self, net: nn.Module, optimizer: torch.optim.Optimizer,
                 loss_fn: Callable[[Tensor, Tensor], Tensor], hooks: list[Hook]) -> None:
        self.net, self.optimizer, self.loss_fn, self.hooks = net, optimizer, loss_fn, hooks
        self.epoch = 0
        self.last_loss = float("nan")

    def call(self, name: str) -> None:
        for hook in self.hooks:
            getattr(hook, name)(self)

    def run(self, batches: list[tuple[Tensor, Tensor]], epochs: int) -> None:
        self.call("before_run")
        self.net.train()
        for self.epoch in range(epochs):
            for x, y in batches:
                self.optimizer.zero_grad()
                loss = self.loss_fn(self.net(x), y)
                loss.backward()
                self.call("after_backward")
                self.optimizer.step()
                self.call("after_update")
                self.last_loss = loss.item()
            self.call("after_epoch")


class SeriesEncoder(nn.Module):
    """Forecast the next value of a bundle of noisy waves."""

    def __init__(self, features: int, width: int, heads: int) -> None:
        super().__init__()
        self.lift = nn.Linear(features, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm_a, self.norm_b = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.read = nn.Linear(width, features)
        self.heads = heads
        self.place = nn.Parameter(torch.randn(64, width) * 0.1)

    def forward(self, x: Tensor) -> Tensor:
        h = self.lift(x) + self.place[: x.shape[1]]
        q, k, v = self.qkv(self.norm_a(h)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        a = nn.functional.scaled_dot_product_attention(q, k, v)
        h = h + self.proj(a.transpose(1, 2).flatten(2))
        h = h + self.mlp(self.norm_b(h))
        return self.read(h[:, -1])


def waves(count: int, length: int, features: int) -> tuple[Tensor, Tensor]:
    time = torch.arange(length + 1).view(1, -1, 1)
    speed = 0.2 + torch.rand(count, 1, features)
    shift = 6.28 * torch.rand(count, 1, features)
    size = torch.distributions.LogNormal(0.5, 0.7).sample((count, 1, features))
    series = size * torch.sin(speed * time + shift)
    return series[:, :-1], series[:, -1]


torch.manual_seed(20)
x, y = waves(320, 20, 3)
batches = list(zip(x.split(32), y.split(32)))
net = SeriesEncoder(3, 32, 4)
engine = Engine(net, torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9), nn.MSELoss(),
                [GradientClipHook(1.0), PrintHook()])
engine.run(batches, epochs=12)

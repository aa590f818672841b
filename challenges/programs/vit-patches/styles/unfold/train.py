"""Teach a vision transformer where the blue square is: python train.py"""

import torch
from torch import Tensor, nn

import data
from model import ViT

STEPS = 180
BATCH = 32
LR = 4e-3
GAMMA = 0.988
DECAY = 0.05
AVERAGE_FROM = 150
REPORT_EVERY = 60


def make_model() -> ViT:
    return ViT(3, 12, 16, patch=4, classes=4, dim=32, depth=2, heads=4, drop=0.05)


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    layers = {f"{name}.weight" for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    groups: dict[bool, list[nn.Parameter]] = {True: [], False: []}
    for name, parameter in model.named_parameters():
        groups[name in layers].append(parameter)
    return torch.optim.AdamW(
        [{"params": groups[True]}, {"params": groups[False], "weight_decay": 0}],
        lr=LR,
        weight_decay=DECAY,
    )


def normalise(images: Tensor) -> Tensor:
    pixels = data.TRAINING[0].transpose(0, 1).flatten(1)
    return (images - pixels.mean(1).view(3, 1, 1)).div(pixels.std(1).view(3, 1, 1))


def get_batch(step: int) -> tuple[Tensor, Tensor]:
    numbers, mirrored = data.draw(step, BATCH)
    images, labels = data.TRAINING[0][numbers], data.TRAINING[1][numbers]  # copies
    images[mirrored] = torch.flip(images[mirrored], dims=[3])
    sideways = mirrored & (labels < 2)
    labels[sideways] = 1 - labels[sideways]
    return normalise(images), labels


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    sums = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    losses: list[float] = []
    optimizer.zero_grad()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = LR * GAMMA**step
        images, labels = get_batch(step)
        loss = nn.functional.cross_entropy(model.train()(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
        if step >= AVERAGE_FROM:
            for name, parameter in model.named_parameters():
                sums[name] += parameter.detach()
    if steps > AVERAGE_FROM:
        means = {name: total / (steps - AVERAGE_FROM) for name, total in sums.items()}
        model.load_state_dict(means)
    return losses


@torch.inference_mode()
def predict(model: nn.Module, images: Tensor) -> list[int]:
    return model.eval()(normalise(images)).max(dim=1).indices.tolist()


def evaluate(model: nn.Module) -> float:
    images, labels = data.HELD_OUT
    right = sum(a == b for a, b in zip(predict(model, images), labels.tolist()))
    return 1 - right / len(labels)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"wrong among the held-out pictures: {evaluate(model):.1%}")

"""Teach a vision transformer where the blue square is: python train.py"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.lr_scheduler import ExponentialLR

import data
from model import ViT

STEPS = 180
BATCH = 32
LR = 4e-3
GAMMA = 0.988  # by which the learning rate shrinks with every step
DECAY = 0.05
AVERAGE_FROM = 150  # the step from which on weights are averaged
REPORT_EVERY = 60

MEAN = data.TRAINING[0].mean(dim=(0, 2, 3))
STD = data.TRAINING[0].std(dim=(0, 2, 3))
MIRRORED = torch.tensor([1, 0, 2, 3])  # the class of a mirrored picture, by its class


def make_model() -> ViT:
    return ViT(
        channels=data.CHANNELS,
        height=data.HEIGHT,
        width=data.WIDTH,
        patch=data.CELL,
        classes=len(data.CLASSES),
        dim=32,
        depth=2,
        heads=4,
        drop=0.05,
    )


def make_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """AdamW; the weights of linear layers decay, and nothing else: no token, no place, no gain."""
    decay = [m.weight for m in model.modules() if isinstance(m, nn.Linear)]
    chosen = {id(p) for p in decay}
    rest = [p for p in model.parameters() if id(p) not in chosen]
    return torch.optim.AdamW(
        [{"params": decay, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}], lr=LR
    )


def normalise(images: Tensor) -> Tensor:
    """Each channel with the mean and deviation that it has over all training pictures."""
    return (images - MEAN[:, None, None]) / STD[:, None, None]


def mirror(images: Tensor, labels: Tensor, mirrored: Tensor) -> tuple[Tensor, Tensor]:
    """Swap left and right where `mirrored` says so, in the picture and in its label."""
    images = torch.where(mirrored[:, None, None, None], images.flip(-1), images)
    labels = torch.where(mirrored, MIRRORED[labels], labels)
    return images, labels


def get_batch(step: int) -> tuple[Tensor, Tensor]:
    """Pictures as the model takes them, and labels."""
    numbers, mirrored = data.draw(step, BATCH)
    images, labels = mirror(data.TRAINING[0][numbers], data.TRAINING[1][numbers], mirrored)
    return normalise(images), labels


class WeightAverage:
    """The mean of a model's weights over the times that it is updated."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.count = model, 0
        self.means = [torch.zeros_like(p) for p in model.parameters()]

    @torch.no_grad()
    def update(self) -> None:
        self.count += 1
        for mean, parameter in zip(self.means, self.model.parameters()):
            mean += (parameter - mean) / self.count

    @torch.no_grad()
    def give_back(self) -> None:
        """Put the means into the model."""
        for mean, parameter in zip(self.means, self.model.parameters()):
            parameter.copy_(mean)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    """Take `steps` steps, and end with the mean of the last weights; the losses."""
    scheduler = ExponentialLR(optimizer, GAMMA)
    average = WeightAverage(model)
    losses = []
    for step in range(steps):
        model.train()
        images, labels = get_batch(step)
        optimizer.zero_grad()
        loss = F.nll_loss(model(images).log_softmax(dim=-1), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if step >= AVERAGE_FROM:
            average.update()
        if (step + 1) % REPORT_EVERY == 0:
            print(f"step {step + 1}: loss {losses[-1]:.3f}, wrong {evaluate(model):.1%}")
    if average.count:
        average.give_back()
    return losses


@torch.no_grad()
def predict(model: nn.Module, images: Tensor) -> Tensor:
    """The likeliest class of each picture, (B,)."""
    model.eval()
    return model(normalise(images)).argmax(dim=-1)


def evaluate(model: nn.Module) -> float:
    """The share of held-out pictures that are taken for something else."""
    wrong, count = 0, 0
    for images, labels in zip(*(part.split(BATCH) for part in data.HELD_OUT)):
        wrong += (predict(model, images) != labels).sum().item()
        count += len(labels)
    return wrong / count


def main() -> None:
    torch.manual_seed(0)
    model = make_model()
    train(model, make_optimizer(model), STEPS)
    print(f"wrong among the held-out pictures: {evaluate(model):.1%}")
    guesses = predict(model, data.HELD_OUT[0][:6])
    for guess, label in zip(guesses.tolist(), data.HELD_OUT[1].tolist()):
        print(f"blue is {data.CLASSES[label]}, said to be {data.CLASSES[guess]}")


if __name__ == "__main__":
    main()

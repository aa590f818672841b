"""Teach functions to go on with a canon, with an optimizer of a few lines: python train.py"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

import data
from model import Weights, forward, init, leaves

STEPS = 120
BATCH = 24
PIECE = 12  # tunes that go through the model at once
CONTEXT = data.LENGTH - 1  # ids that it sees of each at most
PEAK_RATE = 1e-2
WARM_UP = 10  # updates until the rate is at its peak
HALF_LIFE = 60  # updates in which the rate halves from there on
BETA1, BETA2 = 0.9, 0.98
EPS = 1e-4
DECAY = 0.05
CLIP = 1.0
REPORT_EVERY = 40


def make_model() -> Weights:
    return init(len(data.SIGNS), CONTEXT, width=32, heads=4, layers=2)


def make_optimizer(weights: Weights) -> torch.optim.Optimizer:
    """AdamW; gains, shifts and biases do not decay."""
    groups = [
        {"params": [p for p in leaves(weights) if p.dim() > 1], "weight_decay": DECAY},
        {"params": [p for p in leaves(weights) if p.dim() == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(BETA1, BETA2), eps=EPS)


def rate_of(update: int) -> float:
    """Of update 1, 2, ...: a line from PEAK_RATE / WARM_UP to the peak at WARM_UP, then halving."""
    if update <= WARM_UP:
        return PEAK_RATE * update / WARM_UP
    return PEAK_RATE * 0.5 ** ((update - WARM_UP) / HALF_LIFE)


def make_batch(tunes: list[Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Inputs and the notes that follow them (b, longest - 1), and which of those count, 1 or 0:
    the move and the first bar cannot be known, and silence is not asked for."""
    ids = torch.full((len(tunes), max(map(len, tunes))), data.SILENCE)
    for row, tune in zip(ids, tunes):
        row[: len(tune)] = tune
    targets = ids[:, 1:]
    counted = (targets != data.SILENCE).to(torch.get_default_dtype())
    counted[:, : data.BAR] = 0
    return ids[:, :-1], targets, counted


def cross_entropy(logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
    """The surprise at each target in nats, added up over those that count."""
    surprise = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return (surprise * counted).sum()


def train(weights: Weights, optimizer: torch.optim.Optimizer, steps: int) -> list[float]:
    """Take `steps` steps, which change the weights in place; of each the mean loss of its batch."""
    parameters = list(leaves(weights))
    losses = []
    for step in range(steps):
        inputs, targets, counted = make_batch(data.draw(step, BATCH))
        total = 0.0
        optimizer.zero_grad()
        for first in range(0, BATCH, PIECE):
            piece = slice(first, first + PIECE)
            loss = cross_entropy(forward(weights, inputs[piece]), targets[piece], counted[piece])
            loss = loss / counted.sum()
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step + 1)
        optimizer.step()
        losses.append(total)
        if (step + 1) % REPORT_EVERY == 0:
            print(f"step {step + 1}: loss {total:.3f}, held out {evaluate(weights):.3f}")
    return losses


@torch.no_grad()
def evaluate(weights: Weights) -> float:
    """The mean loss over all notes that count of the tunes that are held out."""
    total, count = 0.0, 0.0
    for first in range(0, len(data.HELD_OUT), 20):
        inputs, targets, counted = make_batch(data.HELD_OUT[first : first + 20])
        total += cross_entropy(forward(weights, inputs), targets, counted).item()
        count += counted.sum().item()
    return total / count


@torch.no_grad()
def generate(weights: Weights, ids: Tensor, count: int) -> Tensor:
    """`ids` (b, length) and the `count` likeliest next ones. Of what is longer than the context
    the model sees the move and the newest notes."""
    for _ in range(count):
        seen = ids
        if ids.shape[1] > CONTEXT:
            seen = torch.cat([ids[:, :1], ids[:, 1 - CONTEXT :]], dim=1)
        following = forward(weights, seen)[:, -1].argmax(dim=-1)
        ids = torch.cat([ids, following[:, None]], dim=1)
    return ids


def main() -> None:
    torch.manual_seed(0)
    weights = make_model()
    train(weights, make_optimizer(weights), STEPS)
    print(f"loss over held-out tunes: {evaluate(weights):.3f}")
    for tune in data.HELD_OUT[:3]:
        begun = tune[: 1 + data.BAR]
        rest = len(tune) - len(begun)
        print(
            f"{data.spell(begun)} -> {data.spell(generate(weights, begun[None], rest)[0, -rest:])}"
        )
        print(f"{' ' * len(data.spell(begun))} is {data.spell(tune[-rest:])}")


if __name__ == "__main__":
    main()
